"""Times caches of libCacheSim (pip install libcachesim) on a log in oracleGeneral.

Arguments: the log, the capacity in bytes, rules. Output: a line "RULE SECONDS
MISSRATIO" for each; the seconds are of one pass over the log in C, reading included.
"""

import sys
import time

import libcachesim

RULES = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
}

for rule in sys.argv[3:]:
    reader = libcachesim.TraceReader(
        sys.argv[1], libcachesim.TraceType.ORACLE_GENERAL_TRACE
    )
    cache = RULES[rule](int(sys.argv[2]))
    begun = time.perf_counter()
    missed, _ = cache.process_trace(reader)
    print(rule, time.perf_counter() - begun, missed)
