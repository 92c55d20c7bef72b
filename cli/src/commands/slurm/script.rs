//! The job scripts.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use crate::commands::cert;

/// A time limit as Slurm writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    text: String,
    seconds: u64,
}

impl Limit {
    pub(super) fn seconds(&self) -> u64 {
        self.seconds
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("\"{text}\" is no time limit; use HH:MM:SS, D-HH:MM:SS or minutes");
        let number = |part: &str| part.parse::<u64>().map_err(|_| refused());
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (number(days)?, rest),
            None => (0, text),
        };
        let fields = rest.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
        let seconds = match (fields.as_slice(), text.contains('-')) {
            ([minutes], false) => minutes * 60,
            ([minutes, seconds], false) => minutes * 60 + seconds,
            ([hours, minutes, seconds], _) => hours * 3600 + minutes * 60 + seconds,
            ([hours], true) => hours * 3600,
            ([hours, minutes], true) => hours * 3600 + minutes * 60,
            _ => return Err(refused()),
        };
        let seconds = days * 86_400 + seconds;
        if seconds < 120 {
            return Err(format!("{text} is too short; use 2 minutes at least"));
        }
        Ok(Self { text: text.to_owned(), seconds })
    }
}

/// What jobs ask of the cluster.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) cpus: u32,
    pub(super) time: Limit,
    pub(super) at_once: Option<u32>,
    pub(super) grace: u32,
    pub(super) partition: Option<String>,
    pub(super) account: Option<String>,
    pub(super) mem: Option<String>,
    pub(super) more: Vec<String>,
}

/// A study on a cluster. All paths are absolute, and the same on all nodes.
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) study: PathBuf,
    pub(super) out: PathBuf,
    pub(super) settings: Settings,
}

/// A job, and whose end it waits for.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Script {
    /// Of the file, and of what it does.
    pub(super) name: String,
    pub(super) text: String,
    /// Whether it begins when all before have succeeded.
    pub(super) last: bool,
}

/// Sends SIGTERM on to the program, waits for it, and queues the job again where it was interrupted.
const SUPERVISE: &str = r#"
trap 'kill -TERM "$program" 2>/dev/null' TERM
while true; do
    wait "$program"
    code=$?
    kill -0 "$program" 2>/dev/null || break
done
if [ "$code" -eq 130 ]; then
    echo "interrupted; queued again"
    scontrol requeue "${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}" || exit "$code"
    sleep 30
fi
exit "$code"
"#;

impl Cluster {
    /// Arrays of parts, none longer than the cluster allows, and the job that merges them.
    pub(super) fn parts(&self, parts: u32, largest: u32) -> Vec<Script> {
        let mut scripts = Vec::new();
        let mut done = 0;
        while done < parts {
            let jobs = largest.min(parts - done);
            let name = format!("parts-{}", scripts.len() + 1);
            let mut text = self.head(&name, self.settings.cpus, Some(jobs));
            _ = write!(
                text,
                "{} run {} --out {} --part \"$(({done} + SLURM_ARRAY_TASK_ID))/{parts}\" \
                 --workers \"${{SLURM_CPUS_PER_TASK:-1}}\" --quiet &\nprogram=$!",
                quoted(&self.program),
                quoted(&self.study),
                quoted(&self.out)
            );
            text += SUPERVISE;
            scripts.push(Script { name, text, last: false });
            done += jobs;
        }
        let mut text = self.head("merge", self.settings.cpus, None);
        let out = quoted(&self.out);
        _ = writeln!(text, "exec {} merge {out} --out {out} --quiet", quoted(&self.program));
        scripts.push(Script { name: "merge".to_owned(), text, last: true });
        scripts
    }

    /// A coordinator, and arrays of workers that find it by the file in which it publishes its address.
    pub(super) fn coordinator(
        &self,
        workers: u32,
        largest: u32,
        ledger: Option<&str>,
    ) -> Vec<Script> {
        let (program, out) = (quoted(&self.program), quoted(&self.out));
        let service = quoted(&self.service());
        let certificates = quoted(&self.service().join("certs"));
        let ledger = ledger.map_or_else(String::new, |url| format!(" --ledger {}", words(url)));
        let mut text = self.head("coordinator", 1, None);
        _ = write!(
            text,
            r#"client=(--coordinator-file {service}/address --tls-name regretta --tls-ca {certificates}/ca.pem
    --tls-cert {certificates}/client.pem --tls-key {certificates}/client.key)
{program} coordinator --dir {service} --listen 0.0.0.0:0 --publish {service}/address{ledger} \
    --tls-cert {certificates}/server.pem --tls-key {certificates}/server.key --tls-ca {certificates}/ca.pem &
server=$!
(
    set -e
    {program} study submit {study} "${{client[@]}}"
    {program} study watch {name} "${{client[@]}}"
    [ -e {out}/manifest.json ] || {program} study fetch {name} --out {out} "${{client[@]}}"
    {program} analyze {out}
) &
program=$!
stopped=0
trap 'stopped=1; kill -TERM "$program" "$server" 2>/dev/null' TERM
while true; do
    wait "$program"
    code=$?
    kill -0 "$program" 2>/dev/null || break
done
kill -TERM "$server" 2>/dev/null
wait "$server"
if [ "$stopped" -eq 1 ] && [ "$code" -ne 0 ]; then
    echo "interrupted; queued again"
    scontrol requeue "$SLURM_JOB_ID" || exit 130
    sleep 30
    exit 130
fi
# The workers have nothing left to do.
scancel --me --name {workers} 2>/dev/null
exit "$code"
"#,
            study = quoted(&self.study),
            name = words(&self.name),
            workers = words(&format!("{}-workers", self.name)),
        );
        let mut scripts = vec![Script { name: "coordinator".to_owned(), text, last: false }];
        let mut left = workers;
        while left > 0 {
            let jobs = largest.min(left);
            let name = format!("workers-{}", scripts.len());
            let mut text = self.head_named(&name, "workers", self.settings.cpus, Some(jobs));
            _ = write!(
                text,
                "{program} worker --coordinator-file {service}/address --tls-name regretta \
                 --tls-ca {certificates}/ca.pem --tls-cert {certificates}/client.pem --tls-key {certificates}/client.key \
                 --slots \"${{SLURM_CPUS_PER_TASK:-1}}\" --grace {} &\nprogram=$!",
                self.settings.grace / 2
            );
            text += SUPERVISE;
            scripts.push(Script { name, text, last: false });
            left -= jobs;
        }
        scripts
    }

    /// Where the coordinator keeps its state.
    pub(super) fn service(&self) -> PathBuf {
        self.out.join("service")
    }

    fn head(&self, name: &str, cpus: u32, array: Option<u32>) -> String {
        self.head_named(name, name, cpus, array)
    }

    fn head_named(&self, name: &str, job: &str, cpus: u32, array: Option<u32>) -> String {
        let Settings { time, at_once, grace, partition, account, mem, more, .. } = &self.settings;
        let mut options = vec![
            format!("--job-name={}-{job}", self.name),
            format!("--cpus-per-task={cpus}"),
            format!("--time={}", time.text),
            format!("--signal=B:TERM@{grace}"),
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
        ];
        let limit = at_once.map_or_else(String::new, |most| format!("%{most}"));
        options.extend(array.map(|jobs| format!("--array=1-{jobs}{limit}")));
        let log = if array.is_some() { "%A-%a" } else { "%j" };
        let log = self.out.join("slurm").join(format!("{name}-{log}.log"));
        options.push(format!("--output={}", quoted(&log)));
        options.extend(partition.iter().map(|value| format!("--partition={value}")));
        options.extend(account.iter().map(|value| format!("--account={value}")));
        options.extend(mem.iter().map(|value| format!("--mem={value}")));
        options.extend(more.iter().cloned());
        let mut text = "#!/bin/bash\n".to_owned();
        for option in options {
            _ = writeln!(text, "#SBATCH {option}");
        }
        text.push('\n');
        text
    }
}

/// Certificates for a coordinator whose machine is not known yet: clients are told its name.
pub(super) fn certificates(service: &Path) -> anyhow::Result<()> {
    let folder = service.join("certs");
    if folder.join("ca.pem").exists() {
        return Ok(());
    }
    cert::write_set(&folder, &["regretta".to_owned()], 365).map(|_| ())
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    words(&path.display().to_string())
}

/// Text as one word of a shell.
fn words(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-%+:@=,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        Cluster {
            name: "lemma1".into(),
            program: "/opt/regretta".into(),
            study: "/home/me/my study.toml".into(),
            out: "/scratch/out".into(),
            settings: Settings {
                cpus: 4,
                time: "02:00:00".parse().unwrap(),
                at_once: Some(50),
                grace: 60,
                partition: Some("short".into()),
                account: None,
                mem: None,
                more: vec!["--qos=low".into()],
            },
        }
    }

    #[test]
    fn limits_read_as_slurm_reads_them() {
        let seconds = |text: &str| text.parse::<Limit>().map(|limit| limit.seconds());
        assert_eq!(seconds("02:00:00"), Ok(7200));
        assert_eq!(seconds("90"), Ok(5400));
        assert_eq!(seconds("10:30"), Ok(630));
        assert_eq!(seconds("1-12"), Ok(129_600));
        assert_eq!(seconds("1-00:30"), Ok(88_200));
        assert_eq!(seconds("2-01:00:00"), Ok(176_400));
        for wrong in ["", "1:2:3:4", "soon", "1", "00:01:00"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    /// Every part is run by one job, whatever the longest array.
    #[test]
    fn arrays_are_no_longer_than_allowed() {
        let scripts = cluster().parts(250, 100);
        let names: Vec<&str> = scripts.iter().map(|script| script.name.as_str()).collect();
        assert_eq!(names, ["parts-1", "parts-2", "parts-3", "merge"]);
        for (script, (array, shift)) in
            scripts.iter().zip([("1-100%50", 0), ("1-100%50", 100), ("1-50%50", 200)])
        {
            assert!(script.text.contains(&format!("#SBATCH --array={array}\n")), "{}", script.text);
            assert!(script.text.contains(&format!("$(({shift} + SLURM_ARRAY_TASK_ID))/250")));
        }
        assert!(scripts[3].last && !scripts[3].text.contains("--array"));
        assert!(scripts[0].text.contains("'/home/me/my study.toml'"), "{}", scripts[0].text);
        assert!(scripts[0].text.contains("#SBATCH --qos=low\n"));
    }

    #[test]
    fn workers_find_the_coordinator_by_its_file() {
        let scripts = cluster().coordinator(3, 2, None);
        assert_eq!(scripts.len(), 3);
        let published = "--publish /scratch/out/service/address";
        assert!(
            scripts[0].text.contains(published)
                && scripts[0].text.contains("scancel --me --name lemma1-workers")
        );
        assert!(scripts[1..].iter().all(|script| {
            script.text.contains("--coordinator-file /scratch/out/service/address")
                && script.text.contains("#SBATCH --job-name=lemma1-workers\n")
        }));
    }

    #[test]
    fn words_survive_the_shell() {
        for text in ["plain", "two words", "it's", "$HOME `x` \"y\" \\", ""] {
            let script = format!("printf %s {}", words(text));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
