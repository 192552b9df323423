/* SPDX-License-Identifier: BSD-3-Clause */
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "sim.h"

struct name {
    char kind;
    uint32_t id;
    uint64_t size;
};

struct object {
    struct nj_object object;
    struct sim_files *files;
    struct nj_list live;
    struct name name;
    uint8_t bytes[];
};

struct chunk {
    struct nj_chunk chunk;
    struct sim_files *files;
    uint8_t bytes[];
};

/* A job and whose it is, while it waits on the agenda. */
struct errand {
    struct sim_file_queue *queue;
    struct nj_file_job *job;
};

static uint64_t word(uint32_t id, uint64_t index)
{
    struct nj_prng p = {.state = ((uint64_t)id << 40) + index * 0xd1342543de82ef95u};
    return nj_prng_next(&p);
}

uint8_t nj_sim_file_byte(uint32_t id, uint64_t off)
{
    return (uint8_t)(word(id, off / 8) >> 8 * (off % 8));
}

static void fill(uint32_t id, uint64_t off, uint8_t *out, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        uint64_t w = word(id, (off + i) / 8) >> 8 * ((off + i) % 8);
        for (unsigned left = 8 - (off + i) % 8; left > 0 && i < n_bytes; left--, w >>= 8)
            out[i++] = (uint8_t)w;
    }
}

size_t nj_sim_file_check(uint32_t id, uint64_t off, const uint8_t *data, size_t n_bytes)
{
    uint8_t want[256];

    for (size_t i = 0; i < n_bytes; i += sizeof want) {
        size_t n = n_bytes - i < sizeof want ? n_bytes - i : sizeof want;
        fill(id, off + i, want, n);
        if (memcmp(want, data + i, n) == 0)
            continue;
        size_t same = 0;
        while (want[same] == data[i + same])
            same++;
        return i + same;
    }
    return n_bytes;
}

void nj_sim_files_init(struct sim_files *f, struct sim *sim)
{
    *f = (struct sim_files){.sim = sim};
    nj_prng_init(&f->prng, sim->seed ^ 0xf11e5);
    nj_list_init(&f->live);
}

static void last_of_object(struct nj_ref *ref)
{
    struct object *o =
        nj_container_of(nj_container_of(ref, struct nj_object, ref), struct object, object);

    nj_list_del(&o->live);
    o->files->n_objects--;
    if (o->object.bytes)
        memset(o->bytes, 0xdd, o->name.size); /* who still reads it gets it wrong */
    free(o);
}

static void last_of_chunk(struct nj_ref *ref)
{
    struct chunk *c =
        nj_container_of(nj_container_of(ref, struct nj_chunk, ref), struct chunk, chunk);

    c->files->n_chunks--;
    memset(c->bytes, 0xdd, c->chunk.n_bytes);
    free(c);
}

/* Shards may share an object that is alive, or get one of their own. */
static struct nj_object *share_live(struct sim_files *f, const struct name *n)
{
    for (struct nj_list *l = f->live.next; l != &f->live; l = l->next) {
        struct object *o = nj_container_of(l, struct object, live);
        if (o->name.kind != n->kind || o->name.id != n->id || o->name.size != n->size)
            continue;
        nj_ref_take(&o->object.ref);
        return &o->object;
    }
    return NULL;
}

static struct nj_object *make_object(struct sim_files *f, const struct name *n)
{
    bool whole = n->kind == 'w';
    struct nj_object *shared = nj_prng_below(&f->prng, 2) ? share_live(f, n) : NULL;
    if (shared)
        return shared;
    struct object *o = malloc(sizeof *o + (whole ? n->size : 0));
    NJ_CHECK(o);
    *o = (struct object){.files = f, .name = *n};
    nj_ref_init(&o->object.ref, last_of_object);
    o->object.size_bytes = n->size;
    if (whole) {
        fill(n->id, 0, o->bytes, n->size);
        o->object.bytes = o->bytes;
    }
    nj_list_init(&o->live);
    nj_list_push_back(&f->live, &o->live);
    f->n_objects++;
    return &o->object;
}

static enum nj_file_result open_object(struct sim_files *f, struct nj_file_job *job)
{
    struct name n;
    unsigned long long size;

    if (sscanf(job->path, "%c-%u-%llu", &n.kind, &n.id, &size) != 3)
        return NJ_FILE_ABSENT;
    n.size = size;
    switch (n.kind) {
    case 'w':
    case 'k':
    case 't':
        job->object = make_object(f, &n);
        return NJ_FILE_OK;
    case 'd':
        return NJ_FILE_IS_DIR;
    case 'p':
        return NJ_FILE_DENIED;
    case 'b':
        return NJ_FILE_BROKEN;
    case 'm':
        return NJ_FILE_NO_MEMORY;
    default:
        return NJ_FILE_ABSENT;
    }
}

static enum nj_file_result read_chunk(struct sim_files *f, struct nj_file_job *job)
{
    const struct object *o = nj_container_of(job->object, struct object, object);

    NJ_CHECK(job->n_bytes > 0 && job->n_bytes <= NJ_CHUNK_BYTES);
    NJ_CHECK(job->offset + job->n_bytes <= o->name.size);
    if (o->name.kind == 't' && job->offset + job->n_bytes > o->name.size / 2)
        return NJ_FILE_BROKEN;
    struct chunk *c = malloc(sizeof *c + job->n_bytes);
    NJ_CHECK(c);
    c->files = f;
    c->chunk.n_bytes = job->n_bytes;
    c->chunk.offset = job->offset;
    c->chunk.bytes = c->bytes;
    nj_ref_init(&c->chunk.ref, last_of_chunk);
    fill(o->name.id, job->offset, c->bytes, job->n_bytes);
    job->chunk = &c->chunk;
    f->n_chunks++;
    return NJ_FILE_OK;
}

void nj_sim_files_done(struct sim *sim, void *what)
{
    struct errand *e = what;
    struct nj_file_job *job = e->job;

    if (job->op == NJ_FILE_OPEN) {
        job->object = NULL;
        job->result = open_object(&sim->files, job);
    } else {
        job->chunk = NULL;
        job->result = read_chunk(&sim->files, job);
    }
    e->queue->done[e->queue->n_done++] = job;
    free(e);
}

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct sim_file_queue *q = ctx;
    const struct sim_mix *mix = &q->sim->mix;
    struct nj_prng *p = &q->sim->files.prng;

    if (q->n_out >= mix->file_queue || (q->n_out > 0 && nj_sim_chance(p, mix->file_refuse)))
        return false;
    struct errand *e = malloc(sizeof *e);
    NJ_CHECK(e);
    *e = (struct errand){q, job};
    nj_ns delay = mix->file_delay ? nj_prng_next(p) % mix->file_delay : 0;
    nj_sim_agenda_add(&q->sim->agenda, q->sim->now + delay, SIM_FILE_DONE, e);
    q->n_out++;
    return true;
}

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n)
{
    struct sim_file_queue *q = ctx;
    uint32_t taken = q->n_done < n ? q->n_done : n;

    memcpy(jobs, q->done, taken * sizeof *jobs);
    memmove(q->done, q->done + taken, (q->n_done - taken) * sizeof *jobs);
    q->n_done -= taken;
    q->n_out -= taken;
    return taken;
}

struct nj_file_port nj_sim_files_port(struct sim_file_queue *q)
{
    return (struct nj_file_port){.ctx = q, .submit = submit, .poll = poll};
}
