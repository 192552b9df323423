/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET, PUT, DELETE /kv/KEY: 1024 values of 64 KiB at most, in memory, which all lcores share.
 * A mutex protects the table. NON_BLOCKING handlers may take it, since each holds it for some
 * hundred instructions, without a system call. It is never held across a call that may yield the
 * core: the lcore would run another handler, which would wait for the lock, and so for ever.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "serve.h"
#define MAX   (64u << 10) /* bytes of a value; a longer body gets 413 */
#define N_MAX 1024u       /* values, with uploads, and old values that are still being sent */

struct value {
    struct value *next; /* in its bucket */
    atomic_uint refs;   /* the table's, and one for each response that sends it */
    unsigned long long version;
    uint32_t n_key, n_bytes;
    char bytes[]; /* the key, then the value */
};
static struct value *table[N_MAX];
static unsigned long long versions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the two above */
static atomic_uint n_values;

static void let_go(void *arg)
{
    struct value *v = arg;
    if (v && atomic_fetch_sub(&v->refs, 1) == 1)
        free(v), atomic_fetch_sub(&n_values, 1);
}

/* Where the value of a key is, or would be. Called with the lock. */
static struct value **find(struct nj_view key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (uint32_t i = 0; i < key.n_bytes; i++)
        hash = (hash ^ (unsigned char)key.p[i]) * 16777619u;
    struct value **at = &table[hash % N_MAX];
    while (*at && ((*at)->n_key != key.n_bytes || memcmp((*at)->bytes, key.p, key.n_bytes) != 0))
        at = &(*at)->next;
    return at;
}

static void get(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char tag[32] = "";
    (void)arg;
    pthread_mutex_lock(&lock);
    struct value *v = *find(nj_request_path_rest(req));
    if (v)
        atomic_fetch_add(&v->refs, 1);
    pthread_mutex_unlock(&lock);
    snprintf(tag, sizeof tag, "\"%llu\"", v ? v->version : 0);
    if (!v) {
        nj_response_status(resp, 404);
    } else if (nj_response_header(resp, "etag", tag) == 0 &&
               nj_view_is(nj_request_header(req, "if-none-match"), tag)) {
        nj_response_status(resp, 304);
    } else if (nj_response_send(resp, v->bytes + v->n_key, v->n_bytes, let_go, v) == 0) {
        v = NULL; /* let_go() is called when the client has the bytes */
    }
    let_go(v);
}

/* Stores `v` (NULL: nothing) as the value of `key`. Returns whether there was one. */
static bool replace(struct nj_view key, struct value *v)
{
    pthread_mutex_lock(&lock);
    struct value **at = find(key), *old = *at;
    if (v)
        v->version = ++versions, v->next = old ? old->next : NULL;
    if (v || old)
        *at = v ? v : old->next;
    pthread_mutex_unlock(&lock);
    let_go(old);
    return old;
}

/* BLOCKING: nj_request_read() waits for the body. The lock is taken after that. */
static void put(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view key = nj_request_path_rest(req);
    struct value *v = NULL;
    int64_t n;
    (void)arg;
    if (atomic_fetch_add(&n_values, 1) >= N_MAX ||
        !(v = malloc(sizeof *v + key.n_bytes + MAX + 1))) {
        atomic_fetch_sub(&n_values, 1);
        nj_response_status(resp, 507); /* RFC 4918 11.5 */
        return;
    }
    *v = (struct value){.refs = 1, .n_key = key.n_bytes};
    memcpy(v->bytes, key.p, key.n_bytes);
    while ((n = nj_request_read(req, v->bytes + v->n_key + v->n_bytes, MAX + 1 - v->n_bytes)) > 0)
        v->n_bytes += (uint32_t)n;
    if (n == 0)
        nj_response_status(resp, replace(key, v) ? 204 : 201);
    else
        let_go(v); /* the client has left, or it gets 413 */
}

static void erase(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)arg;
    nj_response_status(resp, replace(nj_request_path_rest(req), NULL) ? 204 : 404);
}

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/kv/*", .type = NJ_NON_BLOCKING, .handle = get},
    {.method = "DELETE", .path = "/kv/*", .type = NJ_NON_BLOCKING, .handle = erase},
    {.method = "PUT", .path = "/kv/*", .type = NJ_BLOCKING, .handle = put, .body_max_bytes = MAX},
};

int main(int argc, char **argv)
{
    return serve(argc, argv, NULL, NULL, routes, sizeof routes / sizeof routes[0]);
}
