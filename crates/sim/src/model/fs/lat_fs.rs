//! The file create and delete benchmark of HBENCH-OS (lat_fs) on any [`Files`].

use super::{Files, FsError};
use crate::model::SimTime;

/// Order in which the files of a round are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOrder {
    /// In the order of creation.
    Forward,
    /// In reverse order of creation.
    Reverse,
}

/// Mean times per file, and the standard deviations of the rounds' means, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatFs {
    /// Bytes of each file.
    pub bytes: u64,
    /// Time to create, write and close a file.
    pub create_ms: f64,
    /// Standard deviation of the rounds' mean create times.
    pub create_deviation: f64,
    /// Time to delete a file.
    pub delete_ms: f64,
    /// Standard deviation of the rounds' mean delete times.
    pub delete_deviation: f64,
}

/// Creates `count` files of `bytes` bytes in `dir` and deletes them; repeats this `rounds` times.
///
/// # Errors
/// Returns the first error of the file system.
pub fn lat_fs(
    files: &mut dyn Files,
    dir: super::DirId,
    bytes: u64,
    count: u64,
    rounds: u64,
    order: DeleteOrder,
) -> Result<LatFs, FsError> {
    let (mut creates, mut deletes) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let start = files.now();
        for name in 0..count {
            let file = files.create(dir, name)?;
            if bytes > 0 {
                files.write(file, 0, bytes)?;
            }
            files.close(file);
        }
        let middle = files.now();
        for i in 0..count {
            files.delete(
                dir,
                if order == DeleteOrder::Forward {
                    i
                } else {
                    count - 1 - i
                },
            )?;
        }
        creates.push(per_file(middle - start, count));
        deletes.push(per_file(files.now() - middle, count));
    }
    let ((create_ms, create_deviation), (delete_ms, delete_deviation)) =
        (mean(&creates), mean(&deletes));
    Ok(LatFs {
        bytes,
        create_ms,
        create_deviation,
        delete_ms,
        delete_deviation,
    })
}

fn per_file(span: SimTime, count: u64) -> f64 {
    span.as_millis() / count.max(1) as f64
}

fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, square.sqrt())
}
