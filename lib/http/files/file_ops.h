/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam between a site, which names files, and whoever may touch a file system: worker
 * threads in the server, a table of byte arrays in the simulator.
 */
#ifndef NJ_HTTP_FILES_FILE_OPS_H
#define NJ_HTTP_FILES_FILE_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "base/limits.h"
#include "base/ref.h"
#include "sched/task.h"

/* Files up to this size are held whole in memory; larger ones are read in chunks. */
#define NJ_OBJECT_WHOLE_MAX  (16u * 1024u * 1024u)
/* Most bytes of one chunk: so many that one read-ahead hides the worker's latency. */
#define NJ_CHUNK_BYTES       (256u * 1024u)
/* What who takes little at a time asks for: a READ of at most this many bytes never gets more. */
#define NJ_CHUNK_SMALL_BYTES (32u * 1024u)

/* One version of one file, immutable and shared by all shards. Made and freed by the port. */
struct nj_object {
    struct nj_ref ref;
    uint64_t size_bytes;
    const uint8_t *bytes; /* all of it, or NULL: ask for chunks */
    int64_t mtime_ns;     /* UNIX time; NJ_OBJECT_NO_TIME for a listing, which is no file */
    bool is_racy; /* changed so shortly before it was read that mtime_ns may not tell a later
                   * change: no strong validator can be made of it (RFC 9110 8.8.1) */
};

#define NJ_OBJECT_NO_TIME INT64_MIN

/* A piece of a large object, shared by all who read there. Made and freed by the port. */
struct nj_chunk {
    struct nj_ref ref;
    uint32_t n_bytes;
    uint64_t offset; /* of bytes[0] in the object */
    const uint8_t *bytes;
};

enum nj_file_op { NJ_FILE_OPEN, NJ_FILE_READ, NJ_FILE_LIST };
#define NJ_FILE_N_OPS 3

/* Precompressed siblings of a file, name.br and so on: a regular file, not older than it. */
enum nj_coding { NJ_CODING_BR, NJ_CODING_ZSTD, NJ_CODING_GZIP, NJ_N_CODINGS };

enum nj_file_result {
    NJ_FILE_OK,
    NJ_FILE_IS_DIR, /* OPEN: a directory; the site decides what that means */
    NJ_FILE_ABSENT, /* no such file, or the path leaves the root */
    NJ_FILE_DENIED, /* permissions */
    NJ_FILE_NO_MEMORY,
    NJ_FILE_NO_ROOM, /* OPEN, LIST: not done, its place in the queue is another client's now */
    NJ_FILE_BUSY,    /* READ, and only inside of the port: another thread reads the same */
    NJ_FILE_BROKEN,  /* I/O error, or the file changed or shrank since it was opened */
};

struct nj_file_job {
    enum nj_file_op op;
    enum nj_file_result result; /* out */

    char path[NJ_PATH_MAX]; /* OPEN, LIST in: below the root, normalised, no leading '/',
                             * terminated; LIST: the folder, "" for the root itself */
    bool wants_siblings;    /* OPEN in */
    uint8_t siblings;       /* OPEN out: bit 1 << enum nj_coding for each there is */
    bool json;              /* LIST in: as JSON, not as HTML. Its object is held in memory */

    struct nj_object *object; /* OPEN out: one reference for the asker, or NULL.
                               * READ in: the job holds a reference of the asker's */
    uint64_t offset;          /* READ in */
    uint32_t n_bytes;         /* READ in: 1..NJ_CHUNK_BYTES, not past the end; a wish */
    uint32_t n_ahead;       /* READ in: pieces of NJ_CHUNK_BYTES that it will want soon after ... */
    uint64_t end;           /* ... READ in: this one, before this offset; also a wish */
    struct nj_chunk *chunk; /* READ out: one reference for the asker, or NULL. The byte at `offset`
                             * is in it; it may begin earlier, and end earlier or later */
    bool was_read;          /* READ in: false; out: it was not in memory when it was asked for */

    void
        *asker; /* the site's; the port only looks: NULL in a READ that nobody waits for any more */
    const void *client;       /* whose request it is for, as struct nj_task.client */
    struct nj_file_job *next; /* these are the port's, while it has the job */
    uint64_t seen;
    uint32_t place;
    bool by_reader;
    struct nj_task task;
    void *lane;
};

struct nj_file_port {
    void *ctx;
    /* Hand a job over. False: the queue is full, the job stays with the caller. It comes back
     * through nj_site_file_done() on the same lcore. Never blocks. A READ for which there is no
     * memory is kept until others let go of chunks, one of what another thread is reading until
     * that was read, or either until nobody waits for it any more; any failure of a READ is the end
     * of a body. */
    bool (*submit)(void *ctx, struct nj_file_job *job);
    /* Take up to `n` jobs that are done. For whoever drives the site, who passes them to it. */
    uint32_t (*poll)(void *ctx, struct nj_file_job **jobs, uint32_t n);
    /* Does poll() have to be called again and again, for READs that it keeps? NULL: it keeps none.
     */
    bool (*keeps)(void *ctx);
    /* After poll(): has a job left the queue, to come back, to be kept or withdrawn, since one was
     * refused? NULL: each that leaves comes back. */
    bool (*has_room)(void *ctx);
    /* Another client wants this OPEN or LIST, too: if it still waits and that gives it an earlier
     * turn, it is for that client from now on, and job->client says so. NULL: there are no turns.
     */
    void (*join)(void *ctx, struct nj_file_job *job, const void *client);
    /* Nobody wants this job any more. True: it had not been begun, and is the caller's again.
     * False: it comes back. NULL: none can be taken back. */
    bool (*withdraw)(void *ctx, struct nj_file_job *job);
};

#endif
