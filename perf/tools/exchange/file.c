/* SPDX-License-Identifier: BSD-3-Clause */
#include "file.h"

#include <stdlib.h>
#include <string.h>

#define MTIME_NS 1600000000000000000

/* Not called: the reference of nj_ref_init() is never released. file_fini() frees the bytes. */
static void on_last_put(struct nj_ref *ref)
{
    (void)ref;
}

bool file_init(struct file *f, uint64_t n_bytes)
{
    *f = (struct file){
        .object = {.size_bytes = n_bytes,
                   .version = {.size_bytes = n_bytes, .mtime_ns = MTIME_NS, .ctime_ns = MTIME_NS}}};
    f->bytes = malloc(n_bytes);
    if (!f->bytes)
        return false;
    for (uint64_t i = 0; i < n_bytes; i++)
        f->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    f->object.bytes = f->bytes;
    nj_ref_init(&f->object.ref, on_last_put);
    return true;
}

void file_fini(struct file *f)
{
    free(f->bytes);
}

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct file *f = ctx;

    if (f->n_jobs == FILE_JOBS_MAX)
        return false;
    f->job[f->n_jobs++] = job;
    return true;
}

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n)
{
    struct file *f = ctx;
    uint32_t got = 0;

    while (got < n && f->n_jobs > 0) {
        struct nj_file_job *job = f->job[--f->n_jobs];
        bool known = job->op == NJ_FILE_OPEN && strcmp(job->path, "file") == 0;
        job->result = known ? NJ_FILE_OK : NJ_FILE_ABSENT;
        if (known) {
            job->object = &f->object;
            job->current_at_ns = NJ_FILE_TIME_MAX;
            nj_ref_take(&f->object.ref);
        }
        jobs[got++] = job;
    }
    return got;
}

struct nj_file_ops file_port(struct file *f)
{
    return (struct nj_file_ops){.ctx = f, .submit = submit, .poll = poll};
}
