/* Tests each function of the header, its codes and its rules of ownership. Prints "ok" at the end. */
#include <hummingbird.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(it)                                                                    \
    do {                                                                             \
        if (!(it)) {                                                                 \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #it,                     \
                    hummingbird_last_error());                                       \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static int released;

static void release(void *buf)
{
    __atomic_add_fetch(&released, 1, __ATOMIC_SEQ_CST);
    free(buf);
}

static char *piece(size_t size, char byte)
{
    char *buf = malloc(size);
    CHECK(buf != NULL);
    memset(buf, byte, size);
    return buf;
}

static hummingbird *open_at(const char *path, int replicas)
{
    hummingbird_disk disk = {path, 32 << 20};
    hummingbird_config config;
    hummingbird *fs = NULL;
    hummingbird_config_init(&config);
    CHECK(config.memory_bytes == 256 << 20 && config.cluster_bytes == 64 << 10);
    config.memory_bytes = 8 << 20;
    config.replicas = (uint32_t)replicas;
    CHECK(hummingbird_open(&disk, 1, &config, &fs) == 0);
    return fs;
}

static void opening(const char *path)
{
    hummingbird_disk disk = {"/no/such/folder/disk", 32 << 20}, none = {NULL, 0};
    hummingbird_config config;
    hummingbird *fs = NULL;
    hummingbird_config_init(&config);
    CHECK(hummingbird_open(&disk, 1, NULL, &fs) == HUMMINGBIRD_DISK);
    CHECK(strstr(hummingbird_last_error(), "/no/such/folder") != NULL);
    CHECK(hummingbird_open(&none, 1, NULL, &fs) == HUMMINGBIRD_CONFIG);
    CHECK(hummingbird_open(NULL, 1, NULL, &fs) == HUMMINGBIRD_CONFIG);
    CHECK(hummingbird_open(&disk, 0, NULL, &fs) == HUMMINGBIRD_CONFIG);
    CHECK(hummingbird_open(&disk, 1, NULL, NULL) == HUMMINGBIRD_CONFIG);
    disk.path = path;
    config.memory_bytes = 1;
    CHECK(hummingbird_open(&disk, 1, &config, &fs) == HUMMINGBIRD_CONFIG);
    config.struct_bytes = 8;
    CHECK(hummingbird_open(&disk, 1, &config, &fs) == HUMMINGBIRD_CONFIG);
    hummingbird_config_init(NULL);
}

static void files(hummingbird *fs)
{
    const void *buf, *same;
    char name[4] = {'a', 0, 'b', 0};
    char text[] = "text";

    /* The contents are copied: the caller may change its memory afterwards. Names may contain zeros. */
    CHECK(hummingbird_write_file(fs, name, 3, text, 4, NULL) == 4);
    text[0] = 'T';
    CHECK(hummingbird_read_file(fs, name, 3, &buf) == 4 && memcmp(buf, "text", 4) == 0);
    CHECK(hummingbird_read_file(fs, name, 3, &same) == 4);
    CHECK(hummingbird_read_file(fs, name, 4, &same) == HUMMINGBIRD_NOT_FOUND);
    CHECK(hummingbird_delete_file(fs, name, 3) == HUMMINGBIRD_BUSY);
    CHECK(hummingbird_done_read_file(fs, name, 3, buf) == 0);
    CHECK(hummingbird_delete_file(fs, name, 3) == HUMMINGBIRD_BUSY);
    CHECK(hummingbird_done_read_file(fs, name, 3, buf) == 0);
    CHECK(hummingbird_done_read_file(fs, name, 3, buf) == HUMMINGBIRD_NOT_FOUND);
    CHECK(hummingbird_delete_file(fs, name, 3) == 0);
    CHECK(hummingbird_delete_file(fs, name, 3) == HUMMINGBIRD_NOT_FOUND);

    /* An empty file. */
    CHECK(hummingbird_write_file(fs, "e", 1, NULL, 0, NULL) == 0);
    CHECK(hummingbird_read_file(fs, "e", 1, &buf) == 0 && buf != NULL);
    CHECK(hummingbird_done_read_file(fs, "e", 1, buf) == 0);

    /* The memory belongs to the library: it is released once, even after an error, and not while
     * the file has a reader. */
    released = 0;
    CHECK(hummingbird_write_file(fs, "g", 1, piece(1000, 'g'), 1000, release) == 1000);
    CHECK(hummingbird_read_file(fs, "g", 1, &buf) == 1000);
    CHECK(hummingbird_write_file(fs, "g", 1, text, 4, NULL) == 4);
    CHECK(released == 0 && ((const char *)buf)[999] == 'g');
    CHECK(hummingbird_done_read_file(fs, "g", 1, buf) == 0);
    CHECK(released == 1);
    CHECK(hummingbird_write_file(fs, NULL, 1, piece(10, 'n'), 10, release) == HUMMINGBIRD_NAME);
    CHECK(hummingbird_write_file(NULL, "n", 1, piece(10, 'n'), 10, release) == HUMMINGBIRD_CONFIG);
    CHECK(released == 3);
    CHECK(hummingbird_write_file(fs, "n", 1, NULL, 10, NULL) == HUMMINGBIRD_CONFIG);
    CHECK(hummingbird_write_file(fs, "t", 1, piece(9 << 20, 't'), 9 << 20, release)
          == HUMMINGBIRD_TOO_LARGE);
    CHECK(released == 4);

    /* A long file that is not kept in memory. */
    CHECK(hummingbird_write_nomem_file(fs, "l", 1, piece(3 << 20, 'l'), 3 << 20, release)
          == 3 << 20);
    CHECK(hummingbird_read_nomem_file(fs, "l", 1, &buf) == 3 << 20);
    CHECK(((const char *)buf)[(3 << 20) - 1] == 'l');
    CHECK(hummingbird_done_read_file(fs, "l", 1, buf) == 0);
}

static void hints(hummingbird *fs)
{
    char text[] = "text";
    CHECK(hummingbird_write_file(fs, "page", 4, text, 4, NULL) == 4);
    CHECK(hummingbird_write_file(fs, "logo", 4, text, 4, NULL) == 4);
    CHECK(hummingbird_collocate_files(fs, "page", 4, "logo", 4) == 0);
    CHECK(hummingbird_collocate_files(fs, "page", 4, "none", 4) == HUMMINGBIRD_NOT_FOUND);
    CHECK(hummingbird_write_file_beside(fs, "icon", 4, text, 4, NULL, "page", 4) == 4);
    CHECK(hummingbird_write_file_beside(fs, "icon", 4, text, 4, NULL, NULL, 4) == HUMMINGBIRD_NAME);
    CHECK(hummingbird_begin_checkpoint(fs) == 0);
    CHECK(hummingbird_checkpoint(fs) == 0);
    /* The file e is packed already, and replicas are off, so the hint comes too late. */
    CHECK(hummingbird_collocate_files(fs, "page", 4, "e", 1) == 1);
}

static void knobs(hummingbird *fs)
{
    const void *buf;
    hummingbird_statistics figures;
    CHECK(hummingbird_update_file_lifetime(fs, 0) == 0);
    CHECK(hummingbird_read_file(fs, "page", 4, &buf) == HUMMINGBIRD_NOT_FOUND);
    CHECK(hummingbird_update_file_lifetime(fs, -1) == 0);
    CHECK(hummingbird_update_cluster_lifetime(fs, 3600) == 0);
    CHECK(hummingbird_read_file(fs, "page", 4, &buf) == 4);
    CHECK(hummingbird_done_read_file(fs, "page", 4, buf) == 0);
    CHECK(hummingbird_get_statistics(fs, &figures, sizeof figures) == 0);
    CHECK(figures.deletes == 1 && figures.hints_taken == 1 && figures.hints_late == 1);
    CHECK(figures.device_bytes > figures.stored_bytes && figures.stored_bytes > 3 << 20);
    CHECK(figures.read_now == 0 && figures.failed_disks == 0 && figures.recovering == 0);
    CHECK(hummingbird_get_statistics(fs, &figures, 8) == HUMMINGBIRD_CONFIG);
}

static void closing(hummingbird *fs, const char *path)
{
    const void *buf;
    CHECK(hummingbird_read_file(fs, "page", 4, &buf) == 4);
    CHECK(hummingbird_close(fs) == HUMMINGBIRD_BUSY);
    CHECK(hummingbird_done_read_file(fs, "page", 4, buf) == 0);
    CHECK(hummingbird_close(fs) == 0);
    CHECK(hummingbird_close(NULL) == HUMMINGBIRD_CONFIG);
    fs = open_at(path, 1);
    CHECK(hummingbird_read_file(fs, "page", 4, &buf) == 4 && memcmp(buf, "text", 4) == 0);
    CHECK(hummingbird_done_read_file(fs, "page", 4, buf) == 0);
    CHECK(hummingbird_close(fs) == 0);
}

int main(int argc, char **argv)
{
    hummingbird *fs;
    CHECK(argc == 2);
    CHECK(strcmp(hummingbird_last_error(), "") == 0);
    opening(argv[1]);
    fs = open_at(argv[1], 0);
    files(fs);
    hints(fs);
    knobs(fs);
    closing(fs, argv[1]);
    puts("ok");
    return 0;
}
