/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be known of a file that somebody else may change meanwhile.
 *
 * Every write(2) and truncate(2) sets mtime and ctime before bytes change, so a look at the file
 * after its bytes were read tells whether they are of the version that was opened. Times advance
 * with the kernel's tick: a file changed a tick ago is left alone until that is over. mtime can be
 * set back, ctime cannot; but ctime also changes with permissions, owners and names. Where one of
 * those explains it, it is taken for that; a ctime that changed by itself may be a rewrite whose
 * mtime was set back, so the file is given up. (So is one that was renamed or relabelled while it
 * was sent: an error where none was needed, but no wrong bytes.)
 *
 * Not seen: a write(2) still under way that began before the file was opened, a store to a mapping
 * whose page was dirty already, and a rewrite with its mtime set back and permissions changed
 * between two looks.
 */
#include "server/file_read.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* File times advance with the kernel's tick, 10 ms at the slowest, and lag by as much. */
#define TICK_NS 20000000

static int64_t now_ns(void)
{
    struct timespec now;
    /* Not the coarse clock: Linux 6.13 and later stamp files ahead of it. */
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool nj__file_is_racy(const struct nj__file_id *id)
{
    return id->ctime_ns > now_ns() - TICK_NS;
}

bool nj__file_read(int fd, uint8_t *out, uint64_t n_bytes, uint64_t offset)
{
    while (n_bytes > 0) {
        ssize_t n = pread(fd, out, n_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        out += n;
        offset += (uint64_t)n;
        n_bytes -= (uint64_t)n;
    }
    return true;
}

/* Pieces of a file that was changed just before it was opened may be of two versions with the same
 * times: the first one waits until a change would show. Once per opened file, at most TICK_NS. */
static void settle(struct nj__file *f)
{
    int64_t wait_ns = f->id.ctime_ns + TICK_NS - now_ns();
    struct timespec ts = {.tv_nsec = wait_ns};

    if (f->is_settled)
        return;
    f->is_settled = true;
    if (f->object.is_racy && wait_ns > 0 && wait_ns <= TICK_NS)
        nanosleep(&ts, NULL);
}

static bool is_explained(const struct nj__file_id *then, const struct nj__file_id *now)
{
    return then->mode != now->mode || then->uid != now->uid || then->gid != now->gid ||
           then->n_links != now->n_links;
}

static bool is_unchanged(struct nj__file *f)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return false;

    struct nj__file_id now = nj__file_id(&st);
    if (now.size != f->id.size || now.mtime_ns != f->id.mtime_ns)
        return false;
    bool same = now.ctime_ns == f->seen.ctime_ns || is_explained(&f->seen, &now);
    f->seen = now;
    return same;
}

bool nj__file_read_piece(struct nj__file *f, uint8_t *out, uint64_t n_bytes, uint64_t offset)
{
    settle(f);
    if (!f->has_changed)
        f->has_changed = !nj__file_read(f->fd, out, n_bytes, offset) || !is_unchanged(f);
    return !f->has_changed;
}
