/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares and hashes versions of files. */
#include "http/files/file_version.h"

#include "base/keyed_hash.h"

#define NS_PER_S 1000000000

bool nj_file_version_eq(const struct nj_file_version *a, const struct nj_file_version *b)
{
    return a->dev == b->dev && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static bool is_exact(int64_t ns)
{
    return ns != NJ_FILE_TIME_MIN && ns != NJ_FILE_TIME_MAX;
}

bool nj_file_version_has_times(const struct nj_file_version *v)
{
    return is_exact(v->mtime_ns) && is_exact(v->ctime_ns);
}

int64_t nj_file_time_s(int64_t ns)
{
    return ns / NS_PER_S - (ns % NS_PER_S < 0);
}

/* Some tools that copy the original's mtime, such as brotli(1), truncate it to seconds. */
static bool is_mtime_as_new(int64_t sibling_ns, int64_t file_ns)
{
    return sibling_ns >= file_ns ||
           (sibling_ns % NS_PER_S == 0 && nj_file_time_s(file_ns) == nj_file_time_s(sibling_ns));
}

bool nj_file_version_is_made_from(const struct nj_file_version *sibling,
                                  const struct nj_file_version *file)
{
    return sibling->ctime_ns >= file->ctime_ns &&
           is_mtime_as_new(sibling->mtime_ns, file->mtime_ns);
}

/* The key is public: tags must stay the same when the server starts again, and between its
 * processes. It need not resist an attacker: whoever can choose versions can write the file.
 * Without the device, whose number may be another one after each mount (overlayfs, btrfs, NFS,
 * tmpfs). */
uint64_t nj_file_version_hash(const struct nj_file_version *v)
{
    static const struct nj_hash_key key = {
        {'n', 'i', 'g', 'h', 't', 'j', 'a', 'r', ' ', 'v', 'e', 'r', 's', 'i', 'o', 'n'}};

    uint64_t what[] = {v->inode, v->size_bytes, (uint64_t)v->mtime_ns, (uint64_t)v->ctime_ns};

    return nj_hash(&key, what, sizeof what);
}
