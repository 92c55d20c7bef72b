//! The job scripts.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::limit::Limit;
use crate::commands::cert;
use crate::commands::connection::SERVICE_NAME;

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
    /// Of the study.
    pub(super) id: String,
    pub(super) program: PathBuf,
    pub(super) study: PathBuf,
    pub(super) out: PathBuf,
    pub(super) settings: Settings,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum After {
    Nothing,
    /// The first job has begun, or will never.
    Start,
    /// All before have succeeded.
    Success,
}

/// A job, and what it waits for.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Script {
    /// Of the file, and of what it does.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) after: After,
}

/// What all scripts of programs that are interrupted begin with.
const FUNCTIONS: &str = include_str!("job.sh");

/// Seconds that a worker waits for a coordinator before it lets others have its node.
const PATIENCE: u32 = 300;

/// Seconds that the shards of a worker may take after SIGTERM, at most.
const DRAIN: u32 = 10;

impl Cluster {
    /// Arrays of parts, none longer than the cluster allows, and the job that merges them.
    pub(super) fn parts(&self, parts: u32, largest: u32) -> Vec<Script> {
        let (program, study, out) = (quoted(&self.program), quoted(&self.study), quoted(&self.out));
        let mut scripts = Vec::new();
        let mut done = 0;
        while done < parts {
            let jobs = largest.min(parts - done);
            let name = format!("parts-{}", scripts.len() + 1);
            let mut text = self.head(&name, self.settings.cpus, Some(jobs));
            text += FUNCTIONS;
            _ = write!(
                text,
                r#"step {program} run {study} --out {out} \
    --part "$(({done} + SLURM_ARRAY_TASK_ID))/{parts}" --workers "${{SLURM_CPUS_PER_TASK:-1}}" --quiet
code=$?
case "$code" in # 130: it was interrupted, 143: before it could listen; anything else would happen again
    130 | 143) again ;;
esac
exit "$code"
"#
            );
            scripts.push(Script { name, text, after: After::Nothing });
            done += jobs;
        }
        // Slurm queues it again where it is preempted; one that takes longer than the limit would do so again.
        let mut text = self.options("merge", "merge", self.settings.cpus, None, false);
        _ = writeln!(text, "exec {program} merge {out} --out {out} --quiet");
        scripts.push(Script { name: "merge".to_owned(), text, after: After::Success });
        scripts
    }

    /// A coordinator, and arrays of workers that find it by the file in which it publishes its address.
    pub(super) fn coordinator(
        &self,
        workers: u32,
        largest: u32,
        ledger: Option<&str>,
    ) -> Vec<Script> {
        let mut scripts = vec![self.coordinator_alone(ledger)];
        let mut left = workers;
        while left > 0 {
            let jobs = largest.min(left);
            scripts.push(self.workers(scripts.len(), jobs));
            left -= jobs;
        }
        scripts
    }

    fn coordinator_alone(&self, ledger: Option<&str>) -> Script {
        let (program, out) = (quoted(&self.program), quoted(&self.out));
        let (service, study) = (quoted(&self.service()), quoted(&self.study));
        let (certificates, id) = (quoted(&self.service().join("certs")), &self.id);
        let ledger = ledger.map_or_else(String::new, |url| format!(" --ledger {}", words(url)));
        let mut text = self.head("coordinator", 1, None);
        text += FUNCTIONS;
        _ = write!(
            text,
            r#"rm -f {service}/address # of a coordinator that was killed
step {program} coordinator --dir {service} --listen 0.0.0.0:0 --publish {service}/address{ledger} \
    --tls-cert {certificates}/server.pem --tls-key {certificates}/server.key --tls-ca {certificates}/ca.pem &
server=$!
study() {{
    {program} study "$@" --coordinator-file {service}/address --tls-name {SERVICE_NAME} --tls-ca {certificates}/ca.pem \
        --tls-cert {certificates}/client.pem --tls-key {certificates}/client.key
}}
(
    study submit {study} || exit
    until study watch {id}; do
        code=$? # 1: no connection, where the coordinator lost its database for a while, or stops
        [ "$code" -eq 1 ] && kill -0 "$server" 2>/dev/null || exit "$code"
        sleep 5
    done
    study fetch {id} --out {out} --replace
) &
client=$!
wait -n "$server" "$client"
code=$?
if kill -0 "$client" 2>/dev/null; then
    case "$code" in # the coordinator was told to stop
        0 | 130 | 143)
            again
            exit 130
            ;;
    esac
else
    scancel --signal=TERM "$SLURM_JOB_ID" # its step, which is the coordinator
    wait "$server"
fi
# Done, or never to be done: the workers have nothing left to do.
[ "$(state "$job")" = RUNNING ] || exit "$code"
scancel $(cat {out}/slurm/workers-*.id) 2>/dev/null
[ "$code" -eq 0 ] || exit "$code"
exec {program} analyze {out}
"#
        );
        Script { name: "coordinator".to_owned(), text, after: After::Nothing }
    }

    fn workers(&self, number: usize, jobs: u32) -> Script {
        let (program, out, service) =
            (quoted(&self.program), quoted(&self.out), quoted(&self.service()));
        let certificates = quoted(&self.service().join("certs"));
        let drain = DRAIN.min(self.settings.grace / 2);
        let name = format!("workers-{number}");
        let mut text = self.options(&name, "workers", self.settings.cpus, Some(jobs), true);
        text += FUNCTIONS;
        _ = write!(
            text,
            r#"coordinator=$(cat {out}/slurm/coordinator.id)
if [ -z "$(state "$coordinator")" ]; then
    echo "the coordinator's job has ended"
    exit 0
fi
step {program} worker --coordinator-file {service}/address --tls-name {SERVICE_NAME} --tls-ca {certificates}/ca.pem \
    --tls-cert {certificates}/client.pem --tls-key {certificates}/client.key \
    --slots "${{SLURM_CPUS_PER_TASK:-1}}" --grace {drain} --patience {PATIENCE}
code=$?
case "$code/$(state "$coordinator")" in
    */) exit 0 ;; # there is nothing left to do
    2/RUNNING) ;; # it was refused
    0/* | 2/* | 130/* | 143/*) again ;; # told to stop, or the coordinator waits in the queue
esac
exit "$code"
"#
        );
        Script { name, text, after: After::Start }
    }

    /// Where the coordinator keeps its state.
    pub(super) fn service(&self) -> PathBuf {
        self.out.join("service")
    }

    fn head(&self, name: &str, cpus: u32, array: Option<u32>) -> String {
        self.options(name, name, cpus, array, true)
    }

    /// The options of a job; `told` whether its step is told to stop before the time limit.
    fn options(&self, name: &str, job: &str, cpus: u32, array: Option<u32>, told: bool) -> String {
        let Settings { time, at_once, grace, partition, account, mem, more, .. } = &self.settings;
        let mut options = vec![
            format!("--job-name={}-{job}", self.name),
            format!("--cpus-per-task={cpus}"),
            format!("--time={}", time.text()),
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
        ];
        options.extend(told.then(|| format!("--signal=TERM@{grace}")));
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
    cert::write_set(&folder, &[SERVICE_NAME.to_owned()], 365).map(|_| ())
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
            id: "0123456789ab".into(),
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
        assert!(scripts[3].after == After::Success && !scripts[3].text.contains("--array"));
        assert!(scripts[0].text.contains("'/home/me/my study.toml'"), "{}", scripts[0].text);
        assert!(scripts[0].text.contains("#SBATCH --qos=low\n"));
    }

    #[test]
    fn workers_find_the_coordinator_by_its_file() {
        let scripts = cluster().coordinator(3, 2, None);
        assert_eq!(scripts.len(), 3);
        assert!(scripts[0].text.contains("--publish /scratch/out/service/address"));
        assert!(scripts[0].text.contains("scancel $(cat /scratch/out/slurm/workers-*.id)"));
        assert!(scripts[1..].iter().all(|script| {
            script.text.contains("--coordinator-file /scratch/out/service/address")
                && script.text.contains("#SBATCH --job-name=lemma1-workers\n")
        }));
    }

    /// Runs a script whose program ends with a code, while Slurm says states of its job and of the
    /// coordinator's: the code of the script, and the job that was queued again.
    fn played(script: &str, code: i32, state: &str, coordinator: &str) -> (i32, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display().to_string();
        for (name, text) in [
            ("srun", format!("#!/bin/sh\nexit {code}\n")),
            ("squeue", format!("#!/bin/sh\n[ $3 = 9 ] && echo {coordinator} || echo {state}\n")),
            ("scontrol", "#!/bin/sh\necho $2 > requeued\n".to_owned()),
            ("sleep", "#!/bin/sh\n".to_owned()),
            ("coordinator.id", "9\n".to_owned()),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, all).unwrap();
        }
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &script.replace("/scratch/out/slurm", &folder)]).current_dir(&folder);
        bash.env("PATH", &path).env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", "1");
        let ended = bash.output().unwrap().status.code().unwrap();
        let requeued = std::fs::read_to_string(dir.path().join("requeued")).ok();
        (ended, requeued.map(|id| id.trim().to_owned()))
    }

    /// Only what was told to stop is queued again: a mistake would be made for ever.
    #[test]
    fn interrupted_parts_alone_are_queued_again() {
        let script = &cluster().parts(2, 10)[0].text;
        for (code, state, again) in [
            (0, "RUNNING", false),
            (2, "RUNNING", false),
            (137, "RUNNING", false),
            (130, "RUNNING", true),
            (143, "RUNNING", true),
            (130, "COMPLETING", false),
        ] {
            let expected = (code, again.then(|| "7_1".to_owned()));
            assert_eq!(played(script, code, state, ""), expected, "{code} {state}");
        }
    }

    /// Workers go back to the queue where they are told to, or the coordinator is in it, and end with it.
    #[test]
    fn workers_come_back_as_long_as_there_is_a_coordinator() {
        let script = &cluster().coordinator(2, 10, None)[1].text;
        for (code, coordinator, expected) in [
            (0, "RUNNING", (0, true)),
            (143, "PENDING", (143, true)),
            (2, "PENDING", (2, true)),
            (2, "RUNNING", (2, false)),
            (137, "RUNNING", (137, false)),
            (2, "", (0, false)),
        ] {
            let expected = (expected.0, expected.1.then(|| "7_1".to_owned()));
            let found = played(script, code, "RUNNING", coordinator);
            assert_eq!(found, expected, "{code} {coordinator}");
        }
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
