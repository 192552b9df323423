/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one store, one of which is stuck in a system call. */
#pragma once

#include "store_rig.h"
#include "support/fs_calls.h"

static inline void start_stuck(void)
{
    on_call = NULL;
    on_stat = NULL;
    atomic_store(&wall_ns, 0);
}

#define SMALL NJ_CHUNK_SMALL_BYTES

/* A thread with one job, which stops in a system call. */
struct other {
    struct nj_file_store *store;
    struct nj_file_job job;
    bool only_tidies;
    struct gate gate;
    pthread_t thread;
};

static inline void *run_other(void *arg)
{
    struct other *o = arg;

    gate = &o->gate;
    if (o->only_tidies)
        nj_file_store_run_housekeeping(o->store);
    else
        nj_file_store_do_job(o->store, &o->job);
    return NULL;
}

/* Returns when it is stuck. */
static inline void begin_other(struct other *o, struct bench *b, const char *call, bool after)
{
    o->store = b->store;
    o->gate = (struct gate){.call = call, .after = after};
    sem_init(&o->gate.reached, 0, 0);
    sem_init(&o->gate.open, 0, 0);
    cr_assert_eq(pthread_create(&o->thread, NULL, run_other, o), 0);
    while (sem_wait(&o->gate.reached) < 0)
        ;
}

static inline enum nj_file_result end_other(struct other *o, bool fails)
{
    o->gate.fails = fails;
    sem_post(&o->gate.open);
    cr_assert_eq(pthread_join(o->thread, NULL), 0);
    return o->job.result;
}

static inline struct nj_file_job read_of(struct nj_file_object *o, uint64_t offset)
{
    return (struct nj_file_job){
        .op = NJ_FILE_READ, .object = o, .offset = offset, .n_bytes = SMALL};
}

static inline struct nj_file_job open_of(const char *name)
{
    struct nj_file_job job = {.op = NJ_FILE_OPEN};
    strcpy(job.path, name);
    return job;
}

static inline void put(struct nj_file_chunk *c)
{
    nj_ref_put(&c->ref);
}

static inline void read_and_put(struct bench *b, struct nj_file_object *o, uint64_t offset)
{
    cr_assert_eq(read_job(b, o, offset, SMALL), NJ_FILE_OK);
    put(b->job.chunk);
}

static inline void list_and_put(struct bench *b)
{
    b->job = (struct nj_file_job){.op = NJ_FILE_LIST};
    nj_file_store_do_job(b->store, &b->job);
    cr_assert_eq(b->job.result, NJ_FILE_OK);
    nj_ref_put(&b->job.object->ref);
}

/* Calls of this thread by the name. */
static const char *counted;
static uint32_t n_calls;

static inline void count_call(const char *call)
{
    n_calls += strcmp(call, counted) == 0;
}

static inline void count(const char *call)
{
    counted = call;
    n_calls = 0;
    on_call = count_call;
}
