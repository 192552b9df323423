/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/file_serving.h"

#include <errno.h>
#include <string.h>

#include "base/set_error.h"
#include "log/log.h"
#include "rights/thread_file_rights.h"
#include "store/memory_check.h"

/* Reads per shard, with the reader. Reads that wait for the disk count, so the bound leaves room
 * for reads of cached data. */
#define READS_MAX 16384u

/* Warns at start if every request for a file would get 403. */
static void check_rights(const char *root)
{
    if (!nj_file_rights_drop())
        nj_log(NJ_LEVEL_WARNING,
               "the system does not let a thread drop root's file permissions (setfsuid to user "
               "%u), so no file is served (403): run as another user, or --serve-private",
               NJ_NOBODY);
    nj_file_rights_restore();
    if (!nj_file_rights_can_reach(root))
        nj_log(NJ_LEVEL_WARNING,
               "--root %s: other users cannot enter that folder, so nothing in it is served "
               "(403): chmod o+x, or --serve-private",
               root);
}

static void check_memory(const struct nj_file_store *store, uint64_t cache_bytes)
{
    struct nj_memory_info m = nj_memory_info_read("");
    char text[512];

    nj_memory_check_warn_cache(&m, cache_bytes, nj_file_store_has_hugepages(store), text,
                               sizeof text);
    if (text[0])
        nj_log(NJ_LEVEL_WARNING, "%s", text);
}

int nj__file_serving_open(struct nj_file_serving *f, const struct nj_server_config *config,
                          bool keeps_root, char *why, size_t why_bytes)
{
    const struct nj_file_store_options o = {
        .root = config->root,
        .cache_bytes = config->cache_bytes,
        .symlinks = config->symlinks,
        .drop_rights = !config->serve_private,
        .n_threads = NJ_FILE_TASKS_MAX,
    };

    if (!o.root)
        return 0;
    if (o.drop_rights && keeps_root)
        check_rights(o.root);
    if (nj_file_store_open(&o, &f->store, why, why_bytes) < 0)
        return -1;
    check_memory(f->store, config->cache_bytes);
    return 0;
}

void nj__file_serving_close(struct nj_file_serving *f)
{
    uint32_t n_left = f->store ? nj_file_store_close(f->store) : 0;

    if (n_left > 0)
        nj_log(NJ_LEVEL_WARNING, "%u file objects were still in use at the end", n_left);
}

/* --- the reader ------------------------------------------------------------------------------- */

static const char *const read_mode_text[] = {
    [NJ_FILE_READS_DIRECT] =
        "by io_uring, bypassing the page cache where the file system supports it",
    [NJ_FILE_READS_BUFFERED] = "by io_uring, through the page cache",
    [NJ_FILE_READS_THREADS] = "by threads, through the page cache",
};

static int start_reader(struct nj_file_serving *f, enum nj_file_reads how, struct nj_shards *shards,
                        const cpu_set_t *cpus, char *why, size_t why_bytes)
{
    const struct nj_file_reader_config c = {
        .store = f->store,
        .no_direct = how == NJ_FILE_READS_BUFFERED,
        .n_shards = shards->n,
        .tasks_max = READS_MAX,
        .affinity = cpus,
        .eal = true,
        .wakeups = shards->wakeup,
    };
    int rc = nj_file_reader_start(&c, &f->reader);

    if (rc != 0)
        return nj_set_error(
            why, why_bytes, "io_uring is not available (%s)%s", strerror(-rc),
            rc == -EPERM ? ": see kernel.io_uring_disabled in sysctl(8), and seccomp" : "");
    nj_log(NJ_LEVEL_INFO, "large files are read %s%s", read_mode_text[how],
           nj_file_reader_has_fixed_buffers(f->reader) ? ", into hugepages" : "");
    return 0;
}

int nj__file_serving_start_reader(struct nj_file_serving *f, enum nj_file_reads how,
                                  struct nj_shards *shards, const cpu_set_t *cpus, char *why,
                                  size_t why_bytes)
{
    bool is_auto = how == NJ_FILE_READS_DEFAULT || how == NJ_FILE_READS_AUTO;
    char cause[256];

    if (!f->store)
        return 0;
    if (how != NJ_FILE_READS_THREADS) {
        if (start_reader(f, is_auto ? NJ_FILE_READS_DIRECT : how, shards, cpus, cause,
                         sizeof cause) == 0)
            return 0;
        if (!is_auto)
            return nj_set_error(why, why_bytes, "%s; --file-reads threads does not need it", cause);
        nj_log(NJ_LEVEL_WARNING, "%s", cause);
    }
    nj_log(NJ_LEVEL_INFO, "large files are read %s", read_mode_text[NJ_FILE_READS_THREADS]);
    return 0;
}

uint32_t nj__file_serving_stop_reader(struct nj_file_serving *f, uint32_t wait_ms)
{
    return f->reader ? nj_file_reader_stop(f->reader, wait_ms) : 0;
}
