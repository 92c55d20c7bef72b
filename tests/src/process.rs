//! What this process has used so far, as Linux tells it.

use std::time::Duration;

/// Ticks of a second in /proc: fixed on Linux, whatever the kernel's own clock.
const TICKS: u64 = 100;

/// The most memory that this process ever had, in KiB.
pub fn peak_memory() -> u64 {
    memory("VmHWM:")
}

/// The memory that this process has now, in KiB.
pub fn memory_now() -> u64 {
    memory("VmRSS:")
}

fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.expect("a number of kB")
}

/// Processor time of all threads, in user and system mode.
///
/// # Panics
/// Where there is no /proc.
pub fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    // The name may have spaces and ends with the last parenthesis; utime is the 12th field after it.
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("a number of ticks")).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
