/*
 * Hummingbird: a file system for caching proxies, as a library.
 *
 * The interface is that of Gabber, Shriver and Stein's Hummingbird (1999 draft). "Section" below means
 * a section of that paper. docs/hummingbird.md has the table of calls, and lists the differences from
 * the paper.
 *
 * A name is a sequence of 1 to 32768 bytes, which may contain zeros. Calls return 0 or more, or a
 * negative code (hummingbird_status). All calls may be made from any thread. hummingbird_close() must
 * be the last call on its handle.
 */
#ifndef HUMMINGBIRD_H
#define HUMMINGBIRD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes of errors (section 4.1). hummingbird_last_error() returns the text. */
enum hummingbird_status {
    HUMMINGBIRD_NOT_FOUND = -1,   /* there is no such file, or it is past its lifetime */
    HUMMINGBIRD_BUSY = -2,        /* the file has readers; for close: some reads were not ended */
    HUMMINGBIRD_NO_ROOM = -3,     /* neither memory nor a disk has room for the file now */
    HUMMINGBIRD_TOO_LARGE = -4,   /* the file is longer than a quarter of the smallest disk */
    HUMMINGBIRD_NAME = -5,        /* a name is NULL, empty or too long */
    HUMMINGBIRD_DISK = -6,        /* a disk cannot be opened */
    HUMMINGBIRD_NOT_DURABLE = -7, /* a disk refuses writes; written data may be lost */
    HUMMINGBIRD_CONFIG = -8,      /* a setting is out of range, or a pointer is NULL */
    HUMMINGBIRD_INTERNAL = -9     /* a defect of the library; the handle must not be used any more */
};

/* An open file system. */
typedef struct hummingbird hummingbird;

/* A file or block device that holds files (section 4: "size and name of the disks"). */
typedef struct hummingbird_disk {
    const char *path;
    uint64_t bytes; /* number of bytes to use, and length of a new file; 0: the complete disk */
} hummingbird_disk;

/* Settings (section 4); defaults are in parentheses. hummingbird_config_init() sets the defaults. */
typedef struct hummingbird_config {
    uint64_t struct_bytes;        /* sizeof(hummingbird_config); set by hummingbird_config_init() */
    uint64_t memory_bytes;        /* for everything except lent contents (256 MiB) */
    uint32_t cluster_bytes;       /* bytes of a cluster, whose files are read together (64 KiB; section 4.3) */
    uint32_t pack_age_ms;         /* longest time from writing to packing of a file (10000) */
    uint32_t sync_interval_ms;    /* longest time from packing to durability (2000) */
    uint32_t replicas;            /* 1: a hint writes a packed file once more (1; section 4.3) */
    uint64_t file_lifetime_ms;    /* 0: no limit (section 4.5) */
    uint64_t cluster_lifetime_ms; /* 0: no limit (section 4.5) */
    uint32_t force_format;        /* 1: formats the disks even if they contain other data (0) */
    uint32_t reserved;            /* 0 */
} hummingbird_config;

/* Counts since the file system was opened, and values of this moment (section 5). */
typedef struct hummingbird_statistics {
    uint64_t writes;         /* files written */
    uint64_t write_waits;    /* writes that waited for the disks */
    uint64_t memory_only;    /* files stored only in memory, because the disks did not keep up */
    uint64_t deletes;        /* files deleted */
    uint64_t memory_hits;    /* reads that were answered from memory */
    uint64_t disk_hits;      /* reads that were answered from a disk */
    uint64_t misses;         /* reads of files that were not found */
    uint64_t hints_taken;    /* hints that took effect */
    uint64_t hints_late;     /* hints that came too late */
    uint64_t replicas;       /* files that were written once more because of a hint */
    uint64_t prefetched;     /* files that came into memory with the read of another file */
    uint64_t prefetch_hits;  /* prefetched files that were read while they were in memory */
    uint64_t stored_bytes;   /* bytes passed to the store for disks: names, contents, 4 bytes per file */
    uint64_t device_bytes;   /* bytes written to disks, including meta-data */
    uint64_t device_writes;  /* write operations */
    uint64_t disk_files;     /* files on disks; a long file counts once for each of its parts */
    uint64_t read_now;       /* names that have readers */
    uint64_t memory_bytes;   /* bytes of contents in memory */
    uint64_t waiting_bytes;  /* bytes of files that wait for their cluster */
    uint64_t recovering;     /* 1: older files are still being loaded (section 4.6) */
    uint64_t failed_disks;   /* disks that refuse writes or all operations */
} hummingbird_statistics;

/* Sets all settings to their defaults. */
void hummingbird_config_init(hummingbird_config *config);

/* Opens the disks, formats empty disks, recovers their contents (section 4.6), and starts the daemons
 * (section 4.5), one thread for each disk. config may be NULL. Returns 0 and sets *fs, or returns a
 * code. */
int64_t hummingbird_open(const hummingbird_disk *disks, size_t count,
                         const hummingbird_config *config, hummingbird **fs);

/* Packs and writes all files, ends the daemons and frees fs. Returns HUMMINGBIRD_BUSY, and does nothing,
 * while some reads are not ended. Returns HUMMINGBIRD_NOT_DURABLE if the file system was closed, but not
 * everything was written. */
int64_t hummingbird_close(hummingbird *fs);

/* Stores the size bytes at buf as the file of this name, and returns size (section 4.1). An older file
 * of this name is replaced. Later, the file is packed with other files and written to a disk.
 *
 * If release is not NULL, the memory at buf belongs to the library from now on, as in the paper, even
 * if the call fails. The caller must not change this memory any more. The library calls release(buf)
 * once, from any thread, when it no longer needs the memory. (For memory of malloc, pass free.) If
 * release is NULL, the contents are copied. If buf is NULL, size must be 0, and release is not called. */
int64_t hummingbird_write_file(hummingbird *fs, const void *name, size_t name_size,
                               void *buf, size_t size, void (*release)(void *));

/* As hummingbird_write_file(), but the file is not kept in memory (section 4.2, for large files). */
int64_t hummingbird_write_nomem_file(hummingbird *fs, const void *name, size_t name_size,
                                     void *buf, size_t size, void (*release)(void *));

/* Stores a file as hummingbird_write_file() does, beside another file. The effect is that of a hint
 * (section 4.1). */
int64_t hummingbird_write_file_beside(hummingbird *fs, const void *name, size_t name_size,
                                      void *buf, size_t size, void (*release)(void *),
                                      const void *beside, size_t beside_size);

/* Finds a file, sets *buf to its contents and returns their size (section 4.1). The contents stay
 * valid and unchanged until hummingbird_done_read_file(), which must follow every successful read. */
int64_t hummingbird_read_file(hummingbird *fs, const void *name, size_t name_size,
                              const void **buf);

/* As hummingbird_read_file(), but contents from a disk are not kept in memory (section 4.2). */
int64_t hummingbird_read_nomem_file(hummingbird *fs, const void *name, size_t name_size,
                                    const void **buf);

/* Ends one read (section 4.1). Returns HUMMINGBIRD_NOT_FOUND if there is no read of this name and
 * address. */
int64_t hummingbird_done_read_file(hummingbird *fs, const void *name, size_t name_size,
                                   const void *buf);

/* Deletes a file that has no readers (section 4.1). */
int64_t hummingbird_delete_file(hummingbird *fs, const void *name, size_t name_size);

/* Gives a hint: second should lie beside first. Both must have been written before (section 4.1).
 * Returns 0 if the hint took effect, 1 if it came too late. */
int64_t hummingbird_collocate_files(hummingbird *fs, const void *first, size_t first_size,
                                    const void *second, size_t second_size);

/* These calls change the lifetimes of files and of clusters, including existing files and clusters
 * (section 4.2). A negative number of seconds means no limit. */
int64_t hummingbird_update_file_lifetime(hummingbird *fs, int64_t seconds);
int64_t hummingbird_update_cluster_lifetime(hummingbird *fs, int64_t seconds);

/* hummingbird_checkpoint() packs all waiting files, and waits until all writes and deletions are durable
 * (sections 4.5 and 4.6). hummingbird_begin_checkpoint() begins this work and returns at once. */
int64_t hummingbird_checkpoint(hummingbird *fs);
int64_t hummingbird_begin_checkpoint(hummingbird *fs);

/* Writes the statistics to *statistics; struct_bytes is sizeof(hummingbird_statistics). */
int64_t hummingbird_get_statistics(hummingbird *fs, hummingbird_statistics *statistics,
                                   size_t struct_bytes);

/* The text of this thread's last error, which tells the user what to do; "" if there was no error. The
 * text is valid until the next call of this thread. */
const char *hummingbird_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
