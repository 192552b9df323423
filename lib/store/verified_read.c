/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a file and detects concurrent changes by stat(2) before and after, as git does ("racy").
 *
 * Every write(2) and truncate(2) sets mtime and ctime before bytes change, so a stat(2) after the
 * read shows whether the bytes are of the opened version. Times advance with a tick: a large file
 * that was changed in this tick is not read until the tick is over, and not opened if that takes
 * seconds; a small one is read twice.
 * mtime can be set back, ctime cannot; but ctime also changes with permissions, owners and names.
 * Such a change explains a new ctime. A ctime that changed alone may be a rewrite whose mtime was
 * set back, so the body is broken off. (This includes a file that was renamed or relabelled while
 * it was sent: an unnecessary error, but no wrong bytes.)
 *
 * Not detected: a write(2) in progress that began before the file was opened, a store to a mapping
 * whose page was dirty already, and a rewrite with its mtime set back and permissions, owner or
 * number of links changed between two calls of stat(2).
 */
#include "store/verified_read.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "threads/os_clock.h"

#define NS_PER_S      INT64_C(1000000000)
/* File times advance with the kernel's tick, 10 ms at the slowest, and lag by as much. */
#define TICK_NS       20000000
/* The same of a file system that stores times in seconds, as ext4 with small inodes does, or in
 * pairs of them (FAT). Its ctimes have no nanoseconds. */
#define LONG_TICK_NS  (2 * NS_PER_S + TICK_NS)
/* Bytes compared at once. */
#define COMPARE_BYTES 4096u

/* Not in linux/magic.h, for it is not in Linux. */
#define ZFS_SUPER_MAGIC 0x2fc12fc1u

static int64_t now_ns(void)
{
    /* Not the coarse clock: Linux 6.13 and later stamp files ahead of it. */
    return (int64_t)nj_os_clock_gettime_ns(CLOCK_REALTIME);
}

int64_t nj__file_current_at(const struct nj_file_version *version, int64_t now)
{
    return now - (version->ctime_ns % NS_PER_S == 0 ? LONG_TICK_NS : TICK_NS);
}

bool nj__file_is_racy(const struct nj_file_version *version)
{
    return version->ctime_ns > nj__file_current_at(version, now_ns());
}

static void wait_ns(int64_t n)
{
    struct timespec ts = {.tv_sec = n / NS_PER_S, .tv_nsec = n % NS_PER_S};

    while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
        ;
}

/* Read at least n_bytes and at most n_room. Returns 0 or an errno; EIO at the end of the file. */
static int read_some(int fd, uint8_t *out, uint64_t n_bytes, uint64_t n_room, uint64_t offset)
{
    uint32_t n_waits = 0;

    for (uint64_t n_got = 0; n_got < n_bytes;) {
        ssize_t n = pread(fd, out + n_got, n_room - n_got, (off_t)(offset + n_got));
        if (n > 0) {
            n_got += (uint64_t)n;
            continue;
        }
        int err = n < 0 ? errno : EIO;
        if (nj__file_is_enomem(err) && n_waits++ < NJ__FILE_READ_RETRIES)
            wait_ns(NJ__FILE_RETRY_NS);
        else if (err != EINTR)
            return err;
    }
    return 0;
}

bool nj__file_pread_exact(int fd, uint8_t *out, uint64_t n_bytes, uint64_t offset)
{
    return read_some(fd, out, n_bytes, n_bytes, offset) == 0;
}

bool nj__file_still_has(int fd, const uint8_t *bytes, uint64_t n_bytes)
{
    uint8_t again[COMPARE_BYTES];

    for (uint64_t at = 0; at < n_bytes; at += sizeof again) {
        uint64_t n = n_bytes - at < sizeof again ? n_bytes - at : sizeof again;
        if (!nj__file_pread_exact(fd, again, n, at) || memcmp(again, bytes + at, n) != 0)
            return false;
    }
    return true;
}

bool nj__file_is_local(int fd)
{
    static const uint32_t local[] = {EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,
                                     F2FS_SUPER_MAGIC,      TMPFS_MAGIC,          RAMFS_MAGIC,
                                     SQUASHFS_MAGIC,        ISOFS_SUPER_MAGIC,    MSDOS_SUPER_MAGIC,
                                     OVERLAYFS_SUPER_MAGIC, REISERFS_SUPER_MAGIC, ZFS_SUPER_MAGIC};
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < NJ_ARRAY_LEN(local); i++)
        if ((uint32_t)fs.f_type == local[i])
            return true;
    return false;
}

/* The time until a change would show in the version. 0 also with a ctime in the future, whose tick
 * has no known end. */
static int64_t tick_left_ns(const struct nj_file_version *v)
{
    int64_t now = now_ns(), current_at = nj__file_current_at(v, now);

    return v->ctime_ns > current_at && v->ctime_ns <= now ? v->ctime_ns - current_at : 0;
}

bool nj__file_is_unsettled(const struct nj_file_version *version)
{
    return tick_left_ns(version) > TICK_NS;
}

/* Chunks of a file changed just before its open may be of two versions with equal timestamps. Wait
 * until a change would be visible. More than TICK_NS is left only if ctime was in the future at the
 * open: the file is then read as it was before. */
static void wait_for_tick(const struct nj__file *f)
{
    int64_t left_ns = f->object.is_racy ? tick_left_ns(&f->id.version) : 0;

    if (left_ns > 0 && left_ns <= TICK_NS)
        wait_ns(left_ns);
}

/* A change of these metadata explains a change of ctime. */
static bool has_metadata_change(const struct nj__file_id *then, const struct nj__file_id *now)
{
    return then->mode != now->mode || then->uid != now->uid || then->gid != now->gid ||
           then->n_links != now->n_links;
}

static uint32_t n_rights_changes(struct nj__file *f)
{
    nj__store_lock(f->shared);
    uint32_t n = f->n_rights_changes;
    nj__store_unlock_and_free(f->shared);
    return n;
}

enum check_result { SAME, CHANGED, CHECK_AGAIN };

/* With the lock: evaluate an fstat(2) result that was taken after f->n_rights_changes was `n`.
 * Results are compared one by one with the last. If another thread recorded a change meanwhile,
 * their order is unknown, and the check is repeated. */
static enum check_result compare_ids(struct nj__file *f, const struct nj__file_id *now, uint32_t n)
{
    bool same_ctime = now->version.ctime_ns == f->seen.version.ctime_ns;

    if (f->has_changed)
        return CHANGED;
    if (n != f->n_rights_changes)
        return same_ctime ? SAME : CHECK_AGAIN;
    if (has_metadata_change(&f->seen, now)) {
        f->seen = *now;
        f->n_rights_changes++;
        return SAME;
    }
    f->has_changed = !same_ctime;
    return same_ctime ? SAME : CHANGED;
}

/* A check is repeated only after another thread recorded a change: at most once per concurrent
 * reader. */
bool nj__file_is_unchanged(struct nj__file *f)
{
    enum check_result v = CHECK_AGAIN;

    while (v == CHECK_AGAIN) {
        uint32_t n = n_rights_changes(f);
        struct stat st;
        if (fstat(f->fd, &st) < 0)
            return false;
        struct nj__file_id now = nj__file_id(&st);
        if (now.version.size_bytes != f->id.version.size_bytes ||
            now.version.mtime_ns != f->id.version.mtime_ns)
            return false;
        nj__store_lock(f->shared);
        v = compare_ids(f, &now, n);
        nj__store_unlock_and_free(f->shared);
    }
    return v == SAME;
}

void nj__file_mark_changed(struct nj__file *f)
{
    nj__store_lock(f->shared);
    f->has_changed = true;
    nj__store_unlock_and_free(f->shared);
    nj__file_stat_add(&f->shared->stats.changed, 1);
}

bool nj__file_read_chunk_verified(struct nj__file *f, uint8_t *out, uint64_t n_bytes,
                                  uint64_t n_room, uint64_t offset)
{
    wait_for_tick(f);
    int err = read_some(f->fd, out, n_bytes, n_room, offset);
    bool ok = err == 0 && nj__file_is_unchanged(f);
    if (!ok && !nj__file_is_enomem(err))
        nj__file_mark_changed(f);
    nj_store_relaxed(&f->is_settled, true);
    if (ok)
        nj_store_relaxed(&f->needs_worker, false);
    return ok;
}
