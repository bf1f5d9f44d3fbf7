/*
 * Hummingbird: a file system for caching proxies, as a library.
 *
 * The interface is that of Gabber, Shriver and Stein's Hummingbird (1999 draft); "section" below is a
 * section of it. docs/hummingbird.md has the table of calls, and what differs from the paper.
 *
 * Names are bytes with a length, 1 to 32768 of them; they may contain zeros. Calls return 0 or more,
 * or a negative code (hummingbird_status). All calls may be made from any thread, except that
 * hummingbird_close() must be the last call on its handle.
 */
#ifndef HUMMINGBIRD_H
#define HUMMINGBIRD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes of errors (section 4.1). hummingbird_last_error() has the text. */
enum hummingbird_status {
    HUMMINGBIRD_NOT_FOUND = -1,   /* no such file, or it is past its lifetime */
    HUMMINGBIRD_BUSY = -2,        /* the file has readers; or, to close: reads are not ended */
    HUMMINGBIRD_NO_ROOM = -3,     /* neither memory nor a disk takes the file now */
    HUMMINGBIRD_TOO_LARGE = -4,   /* longer than a quarter of the smallest disk */
    HUMMINGBIRD_NAME = -5,        /* a name is NULL, empty or too long */
    HUMMINGBIRD_DISK = -6,        /* a disk cannot be opened */
    HUMMINGBIRD_NOT_DURABLE = -7, /* a disk takes no writes; what was written may be lost */
    HUMMINGBIRD_CONFIG = -8,      /* a knob is out of range, or a pointer is NULL */
    HUMMINGBIRD_INTERNAL = -9     /* a defect of the library; the handle must not be used any more */
};

/* A file system that is open. */
typedef struct hummingbird hummingbird;

/* A file or block device that holds files (section 4: "size and name of the disks"). */
typedef struct hummingbird_disk {
    const char *path;
    uint64_t bytes; /* so much of it is used, and a file is created as long as this; 0: all of it */
} hummingbird_disk;

/* Knobs (section 4). hummingbird_config_init() sets the usual ones. */
typedef struct hummingbird_config {
    uint64_t struct_bytes;        /* sizeof(hummingbird_config); set by hummingbird_config_init() */
    uint64_t memory_bytes;        /* for everything but contents that are lent (256 MiB) */
    uint32_t cluster_bytes;       /* gathered in one place, read together (64 KiB; section 4.3) */
    uint32_t pack_age_ms;         /* packed at the latest so long after it was written (10000) */
    uint32_t sync_interval_ms;    /* durable at the latest so long after it was packed (2000) */
    uint32_t replicas;            /* a hint for a packed file writes it once more (1; section 4.3) */
    uint64_t file_lifetime_ms;    /* 0: no limit (section 4.5) */
    uint64_t cluster_lifetime_ms; /* 0: no limit (section 4.5) */
    uint32_t force_format;        /* 1: formats whatever the disks hold (0) */
    uint32_t reserved;            /* 0 */
} hummingbird_config;

/* Figures since the file system was opened, and of this moment (section 5). */
typedef struct hummingbird_statistics {
    uint64_t writes;         /* files written */
    uint64_t write_waits;    /* writes that waited for the disks */
    uint64_t memory_only;    /* files that went to memory alone: the disks did not keep up */
    uint64_t deletes;        /* files deleted */
    uint64_t memory_hits;    /* reads that memory answered */
    uint64_t disk_hits;      /* reads that a disk answered */
    uint64_t misses;         /* reads of files that were not there */
    uint64_t hints_taken;    /* hints that took effect */
    uint64_t hints_late;     /* hints that came too late */
    uint64_t replicas;       /* files that a hint has written once more */
    uint64_t prefetched;     /* files that came into memory with another one's read */
    uint64_t prefetch_hits;  /* of these, the ones asked for while they were there */
    uint64_t stored_bytes;   /* names and contents that went to disks */
    uint64_t device_bytes;   /* bytes written to disks, meta-data included */
    uint64_t device_writes;  /* write operations */
    uint64_t disk_files;     /* files on disks; a long one counts each of its parts */
    uint64_t read_now;       /* names that have readers */
    uint64_t memory_bytes;   /* contents in memory */
    uint64_t waiting_bytes;  /* bytes that wait for their cluster */
    uint64_t recovering;     /* 1: older files are still being loaded (section 4.6) */
    uint64_t failed_disks;   /* disks that take no writes, or nothing at all */
} hummingbird_statistics;

/* Sets the usual knobs. */
void hummingbird_config_init(hummingbird_config *config);

/* Opens the disks, formats empty ones, recovers what is on them (section 4.6), starts the daemons
 * (section 4.5), one thread for each disk. config may be NULL. Returns 0 and sets *fs, or a code. */
int64_t hummingbird_open(const hummingbird_disk *disks, size_t count,
                         const hummingbird_config *config, hummingbird **fs);

/* Packs and writes everything, ends the daemons and frees fs. HUMMINGBIRD_BUSY while reads are not
 * ended: then nothing was done. HUMMINGBIRD_NOT_DURABLE: ended, but not all was written. */
int64_t hummingbird_close(hummingbird *fs);

/* Stores size bytes at buf under a name, in place of an older file, and returns size (section 4.1).
 * The file goes to a disk later, packed with others.
 *
 * With release the memory at buf becomes the library's, as in the paper, also if the call fails:
 * nobody changes it any more, and release(buf) is called once, from any thread, when it is not needed
 * any more (free fits memory of malloc). With release NULL the contents are copied. */
int64_t hummingbird_write_file(hummingbird *fs, const void *name, size_t name_size,
                               void *buf, size_t size, void (*release)(void *));

/* As hummingbird_write_file(), past memory (section 4.2, for large files). */
int64_t hummingbird_write_nomem_file(hummingbird *fs, const void *name, size_t name_size,
                                     void *buf, size_t size, void (*release)(void *));

/* As hummingbird_write_file(), beside another file: a hint given at once (section 4.1). */
int64_t hummingbird_write_file_beside(hummingbird *fs, const void *name, size_t name_size,
                                      void *buf, size_t size, void (*release)(void *),
                                      const void *beside, size_t beside_size);

/* Finds a file, sets *buf to its contents and returns their size (section 4.1). The contents stay
 * valid and unchanged until the hummingbird_done_read_file() that every success needs. */
int64_t hummingbird_read_file(hummingbird *fs, const void *name, size_t name_size,
                              const void **buf);

/* The same, without a place in memory for what a disk has to be asked for (section 4.2). */
int64_t hummingbird_read_nomem_file(hummingbird *fs, const void *name, size_t name_size,
                                    const void **buf);

/* Ends one read (section 4.1). HUMMINGBIRD_NOT_FOUND: there is none of this name and address. */
int64_t hummingbird_done_read_file(hummingbird *fs, const void *name, size_t name_size,
                                   const void *buf);

/* Deletes a file that nobody reads (section 4.1). */
int64_t hummingbird_delete_file(hummingbird *fs, const void *name, size_t name_size);

/* A hint: second should lie beside first; both were written before (section 4.1). Returns 0 if it took
 * effect, 1 if it came too late. */
int64_t hummingbird_collocate_files(hummingbird *fs, const void *first, size_t first_size,
                                    const void *second, size_t second_size);

/* Change the lifetimes, for files that are there, too (section 4.2); seconds below 0: no limit. */
int64_t hummingbird_update_file_lifetime(hummingbird *fs, int64_t seconds);
int64_t hummingbird_update_cluster_lifetime(hummingbird *fs, int64_t seconds);

/* Packs everything that waits and waits until all writes and deletions are durable (sections 4.5 and
 * 4.6). The other begins that and returns at once. */
int64_t hummingbird_checkpoint(hummingbird *fs);
int64_t hummingbird_begin_checkpoint(hummingbird *fs);

/* Fills in the figures; struct_bytes is sizeof(hummingbird_statistics). */
int64_t hummingbird_get_statistics(hummingbird *fs, hummingbird_statistics *statistics,
                                   size_t struct_bytes);

/* The text of this thread's last error, which says what to do; "" without one. Valid until the next
 * call of this thread. */
const char *hummingbird_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
