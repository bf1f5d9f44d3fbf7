"""Plays requests through the caches of libCacheSim (pip install libcachesim).

Input: a line with the number of requests, one with the number of jobs, a line
"OBJECT SIZE" for each request and a line "RULE CAPACITY" for each job. Output:
for each job a line of one digit for each request, 1 for a hit.
"""

import sys

import libcachesim

RULES = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
}


def main():
    count, jobs = int(sys.stdin.readline()), int(sys.stdin.readline())
    asked = [tuple(map(int, sys.stdin.readline().split())) for _ in range(count)]
    request = libcachesim.Request()
    for _ in range(jobs):
        rule, capacity = sys.stdin.readline().split()
        cache = RULES[rule](int(capacity))
        hits = []
        for request.obj_id, request.obj_size in asked:
            hits.append("1" if cache.get(request) else "0")
        print("".join(hits))


main()
