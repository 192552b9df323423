/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the file server, which names files, and the code that accesses a file
 * system: worker threads in the server, a table of byte arrays in the simulator. All calls are on
 * the shard's lcore and never block. A submitted job belongs to the implementation until it
 * completes or is withdrawn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/ref.h"
#include "http/files/file_version.h"
#include "sched/task.h"

/* Files up to this size are held in memory entirely; larger ones are read in chunks. */
#define NJ_OBJECT_IN_MEMORY_MAX (16u * 1024u * 1024u)
/* Largest chunk. One chunk of read-ahead hides the worker's latency. */
#define NJ_CHUNK_BYTES          (256u * 1024u)
/* A READ of at most this many bytes returns a chunk of at most this size. */
#define NJ_CHUNK_SMALL_BYTES    (32u * 1024u)

/* One version of one file, immutable and shared by all shards. Allocated and freed by the
 * implementation. */
struct nj_file_object {
    struct nj_ref ref;
    uint64_t size_bytes;
    const uint8_t *bytes;           /* all of it, or NULL: read it in chunks */
    struct nj_file_version version; /* NJ_FILE_NO_VERSION for a listing, which is not a file */
    bool is_racy; /* changed so shortly before it was read that a later change may have left the
                     version as it is: the object has no validators (RFC 9110 8.8.1) */
};

/* A part of a large object, shared by all readers. Allocated and freed by the implementation. */
struct nj_file_chunk {
    struct nj_ref ref;
    uint32_t n_bytes;
    uint64_t offset; /* of bytes[0] within the object */
    const uint8_t *bytes;
};

enum nj_file_op { NJ_FILE_OPEN, NJ_FILE_READ, NJ_FILE_LIST };
#define NJ_FILE_N_OPS 3

/* Precompressed siblings of a file (name.br and so on): regular files whose times show that they
 * were made from this version of it. */
enum nj_coding { NJ_CODING_BR, NJ_CODING_ZSTD, NJ_CODING_GZIP, NJ_N_CODINGS };

enum nj_file_result {
    NJ_FILE_OK,
    NJ_FILE_IS_DIR,    /* OPEN: a directory */
    NJ_FILE_ABSENT,    /* no such file, or the path leaves the root */
    NJ_FILE_DENIED,    /* no permission */
    NJ_FILE_LEASED,    /* OPEN: another process holds a lease of the file and has not returned it */
    NJ_FILE_UNSETTLED, /* OPEN: it changed so shortly ago that a reader would have to wait for
                          seconds until its bytes are known to be of one version */
    NJ_FILE_NO_MEMORY,
    NJ_FILE_DISPLACED, /* OPEN, LIST: not done: another client's job took its place in the queue */
    NJ_FILE_BUSY,   /* READ, internal to the implementation: another thread reads the same bytes */
    NJ_FILE_BROKEN, /* I/O error, or the file changed since it was opened */
};

struct nj_file_job {
    enum nj_file_op op;
    enum nj_file_result result; /* out */

    char path[NJ_PATH_MAX]; /* OPEN, LIST in: relative to the root, normalised, without leading '/',
                               terminated; LIST: the folder, "" for the root. Or that of a site
                               (store/file_root.h), which begins with '/'; LIST: behind it, and
                               terminated, what the listing shows as its path */
    bool wants_siblings;    /* OPEN in */
    uint8_t siblings;       /* OPEN out: bit 1 << enum nj_coding of each sibling found */
    uint64_t sibling_hash[NJ_N_CODINGS]; /* OPEN out: nj_file_version_hash() of each of these */
    int64_t current_at_ns; /* OPEN out: UNIX time; a change after it has a later ctime */
    bool json;             /* LIST in: JSON instead of HTML. The object is in memory */

    struct nj_file_object *object; /* OPEN out: one reference for the submitter, or NULL. READ in:
                                 the job holds a reference */
    uint64_t offset;               /* READ in */
    uint32_t n_bytes;              /* READ in: 1..NJ_CHUNK_BYTES, not past the end; a hint */
    uint32_t n_ahead; /* READ in: NJ_CHUNK_BYTES units of read-ahead after this one (hint) */
    uint64_t end;     /* READ in: ... below this offset (hint) */
    struct nj_file_chunk *chunk; /* READ out: one reference for the submitter, or NULL. The byte at
                               `offset` is in it; it may begin earlier, and end earlier or later */
    bool was_read;               /* READ in: false; out: it had to be read from the file system */

    void *owner; /* READ: the waiting body; NULL: cancelled. The implementation only tests it */
    const void *client;       /* the client of the request, as struct nj_task.client */
    struct nj_file_job *next; /* next to file_client: the implementation's while it has the job */
    uint64_t seen;
    uint32_t place;
    bool read_by_reader;
    struct nj_task task;
    void *file_client; /* a struct nj_file_client */
};

struct nj_file_ops {
    void *ctx;
    /* Submits a job. False: the queue is full, and the caller still owns the job. It completes
     * through nj_file_server_job_done() on the same lcore. A READ without memory waits until other
     * chunks are released; a READ of bytes that another thread is reading waits for that thread.
     * Both end when `owner` is NULL. Any failure of a READ ends its body. */
    bool (*submit)(void *ctx, struct nj_file_job *job);
    /* Takes up to `n` completed jobs. The caller passes them to nj_file_server_job_done(). */
    uint32_t (*poll)(void *ctx, struct nj_file_job **jobs, uint32_t n);
    /* True if poll() must be called repeatedly because READs wait. NULL: none ever wait. */
    bool (*needs_polling)(void *ctx);
    /* After poll(): true if a job left the queue (completed, waiting or withdrawn) since one was
     * refused. NULL: every job that leaves the queue completes. */
    bool (*has_room)(void *ctx);
    /* Another client wants the same OPEN or LIST. If the job is still queued and that client's turn
     * is earlier, the job becomes that client's and job->client is set. NULL: the queue has no
     * turns. */
    void (*join)(void *ctx, struct nj_file_job *job, const void *client);
    /* Cancels a job. True: not started; the caller owns it. False: it will complete. NULL: jobs
     * cannot be cancelled. */
    bool (*withdraw)(void *ctx, struct nj_file_job *job);
};
