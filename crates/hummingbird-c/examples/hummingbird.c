/*
 * Shows how a caching proxy uses the library: it reads a file. If the file is missing, the proxy fetches and
 * stores the file, and gives a hint.
 *
 * cc hummingbird.c $(pkg-config --cflags --libs hummingbird) -o example && ./example PATH
 */
#include <hummingbird.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the library's error text. */
static void fail(const char *doing)
{
    fprintf(stderr, "%s: %s\n", doing, hummingbird_last_error());
    exit(1);
}

/* Takes the place of a request to the origin. The memory belongs to the caller. */
static char *fetch(const char *url, size_t *size)
{
    char *contents = malloc(strlen(url) + 32);
    if (contents == NULL)
        exit(1);
    *size = (size_t)sprintf(contents, "the contents of %s", url);
    return contents;
}

/* Serves one request of a visitor whose last page was page. Returns 1 for a hit. */
static int request(hummingbird *fs, const char *url, const char *page)
{
    const void *found;
    char *contents;
    size_t size;
    int64_t got = hummingbird_read_file(fs, url, strlen(url), &found);

    if (got >= 0) {
        /* The contents are lent until hummingbird_done_read_file(). */
        contents = fetch(url, &size);
        if ((size_t)got != size || memcmp(found, contents, size) != 0) {
            fprintf(stderr, "%s: other contents\n", url);
            exit(1);
        }
        free(contents);
        if (hummingbird_done_read_file(fs, url, strlen(url), found) != 0)
            fail("done_read_file");
        return 1;
    }
    if (got != HUMMINGBIRD_NOT_FOUND)
        fail("read_file");
    contents = fetch(url, &size);
    /* The memory belongs to the library from here on; the library calls free(). */
    if (hummingbird_write_file(fs, url, strlen(url), contents, size, free) < 0)
        fail("write_file");
    if (page != NULL && hummingbird_collocate_files(fs, page, strlen(page), url, strlen(url)) < 0)
        fail("collocate_files");
    return 0;
}

int main(int argc, char **argv)
{
    hummingbird_config config;
    hummingbird_statistics figures;
    hummingbird_disk disk;
    hummingbird *fs;
    int visit, site, image, hits;
    char page[64], url[96];

    if (argc != 2) {
        fprintf(stderr, "usage: %s PATH\n", argv[0]);
        return 2;
    }
    disk.path = argv[1];
    disk.bytes = 64 << 20;
    hummingbird_config_init(&config);
    config.memory_bytes = 16 << 20;
    if (hummingbird_open(&disk, 1, &config, &fs) != 0)
        fail("open");
    for (visit = 0; visit < 2; visit++) {
        hits = 0;
        for (site = 0; site < 100; site++) {
            sprintf(page, "http://site-%d/", site);
            hits += request(fs, page, NULL);
            for (image = 0; image < 4; image++) {
                sprintf(url, "%s%d.png", page, image);
                hits += request(fs, url, page);
            }
        }
        printf("visit %d: %d of 500 were there\n", visit, hits);
    }
    if (hummingbird_checkpoint(fs) != 0)
        fail("checkpoint");
    if (hummingbird_get_statistics(fs, &figures, sizeof figures) != 0)
        fail("get_statistics");
    printf("written %" PRIu64 ", memory hits %" PRIu64 ", hints %" PRIu64 "\n", figures.writes,
           figures.memory_hits, figures.hints_taken);
    if (hummingbird_close(fs) != 0)
        fail("close");
    return 0;
}
