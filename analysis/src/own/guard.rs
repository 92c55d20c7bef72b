//! Expressions come from anybody, and the engine panics at some that it cannot evaluate.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use polars::prelude::{PolarsError, PolarsResult};

/// Calls that are under way.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// What a call of the engine returns. What it panics with is its error, and is not printed.
pub(super) fn guarded<T>(call: impl FnOnce() -> PolarsResult<T>) -> PolarsResult<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(silence);
    CALLS.fetch_add(1, Ordering::Relaxed);
    let returned = catch_unwind(AssertUnwindSafe(call));
    CALLS.fetch_sub(1, Ordering::Relaxed);
    returned.unwrap_or_else(|panic| {
        let said = words(panic.as_ref()).lines().next().unwrap_or_default();
        Err(PolarsError::ComputeError(format!("the engine panicked: {said}").into()))
    })
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default()
}

/// Keeps panics of the engine off the terminal while it is called. It has threads of its own, so that they are
/// told by where they are.
fn silence() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |at| at.file());
        let is_engine = file.contains("polars") || file.contains("sqlparser");
        if CALLS.load(Ordering::Relaxed) == 0 || !is_engine {
            print(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use polars::prelude::{
        DataFrame, DataType, Engine, IntoColumn, IntoLazy, NamedFrom, Series, col, lit,
    };

    use super::*;

    /// Unsigned bytes are a type that this build of the engine lacks.
    #[test]
    fn a_panic_of_the_engine_is_an_error() {
        let y = Series::new("y".into(), [1.0_f64, 2.0]).into_column();
        let frame = DataFrame::new_infer_height(vec![y]).unwrap().lazy();
        let cast = frame.select([col("y").cast(DataType::UInt8).gt(lit(0))]);
        for engine in [Engine::InMemory, Engine::Streaming] {
            assert!(guarded(|| cast.clone().collect_with_engine(engine)).is_err(), "{engine:?}");
        }
        let error = guarded::<()>(|| panic!("of type {}", "u8")).unwrap_err();
        assert_eq!(error.to_string(), "the engine panicked: of type u8");
        assert_eq!(guarded(|| Ok(1)).unwrap(), 1);
    }
}
