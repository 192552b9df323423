/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and frees file servers, and requests that wait; retries reads that were refused. */
#include <string.h>

#include "base/assert.h"
#include "base/page_alloc.h"
#include "http/files/file_server_internal.h"

static struct nj_str str_of(const char *s)
{
    return (struct nj_str){s, s ? (uint32_t)strlen(s) : 0};
}

struct nj_file_server *nj_file_server_new(const struct nj_file_server_config *config)
{
    struct nj_file_server *fs = nj_pages_map(sizeof *fs, 0); /* has a key */
    if (!fs)
        return NULL;
    NJ_CHECK(config->exchanges_max > 0 && config->exchanges_max <= UINT32_MAX / 2);
    fs->config = *config;
    fs->options = config->options;
    fs->mime = fs->options->mime;
    if (!fs->mime.default_type)
        fs->mime.default_type = "application/octet-stream";
    fs->index = fs->options->index ? str_of(fs->options->index) : NJ_STR("index.html");
    nj_path_cache_init(&fs->paths, fs->index, fs->options->dotfiles, &config->hash_key);
    fs->cache_control = str_of(fs->options->cache_control);
    for (uint32_t i = 0; i < NJ__OPEN_BUCKETS; i++)
        nj_list_init(&fs->opens[i]);
    fs->meta_cache = nj_lookup_cache_new();
    bool ok = nj__file_bodies_init(&fs->files, config) &&
              nj__multipart_init(&fs->files, config->exchanges_max) &&
              nj_pool_init(&fs->wait_pool, sizeof(struct nj_file_wait), config->exchanges_max);
    if (!fs->meta_cache || !ok) {
        nj_file_server_free(fs);
        return NULL;
    }
    return fs;
}

void nj_file_server_free(struct nj_file_server *fs)
{
    if (!fs)
        return;
    NJ_ASSERT(fs->wait_pool.n_used == 0);
    nj_lookup_cache_free(fs->meta_cache);
    nj__file_bodies_fini(&fs->files);
    nj_pool_fini(&fs->wait_pool);
    nj_pages_unmap(fs, sizeof *fs);
}

uint32_t nj_file_server_jobs_in_flight(const struct nj_file_server *fs)
{
    return fs->files.jobs_out;
}

void nj_file_server_retry_reads(struct nj_file_server *fs)
{
    const struct nj_file_ops *file_ops = fs->config.files;

    if (!nj_list_empty(&fs->files.starved) && file_ops->has_room &&
        file_ops->has_room(file_ops->ctx))
        nj__file_bodies_retry_reads(&fs->files);
}

bool nj_file_server_has_refused_reads(const struct nj_file_server *fs)
{
    return !nj_list_empty(&fs->files.starved);
}

/* --- requests that wait --- */

static void keep_str(struct nj_file_wait *x, uint32_t *at, struct nj_str *s)
{
    if (!s->p)
        return;
    NJ_ASSERT(*at + s->n_bytes <= sizeof x->strings);
    memcpy(x->strings + *at, s->p, s->n_bytes);
    s->p = x->strings + *at;
    *at += s->n_bytes;
}

struct nj_file_wait *nj__file_wait_new(struct nj_file_server *fs,
                                       const struct nj__file_request *req)
{
    struct nj_file_wait *x = nj_pool_take_raw(&fs->wait_pool);
    uint32_t at = 0;

    if (!x)
        return NULL;
    x->fs = fs;
    x->req = *req;
    x->job = NULL;
    x->freed = NULL;
    keep_str(x, &at, &x->req.path);
    keep_str(x, &at, &x->req.query);
    keep_str(x, &at, &x->req.accept_encoding);
    keep_str(x, &at, &x->req.accept);
    if (!req->has_conditions)
        x->req.conditions = (struct nj_preconditions){0};
    keep_str(x, &at, &x->req.conditions.if_match);
    keep_str(x, &at, &x->req.conditions.if_none_match);
    keep_str(x, &at, &x->req.conditions.if_modified_since);
    keep_str(x, &at, &x->req.conditions.if_unmodified_since);
    keep_str(x, &at, &x->req.conditions.if_range);
    keep_str(x, &at, &x->req.conditions.range);
    nj_list_init(&x->link);
    return x;
}

struct nj_str nj_file_server_waited_path(const struct nj_txn *t)
{
    const struct nj_file_wait *x = t->wait;

    if (!x || !x->job)
        return (struct nj_str){NULL, 0};
    return x->req.path.n_bytes > 0 ? x->req.path
                                   : (struct nj_str){x->job->file.path, x->job->n_path};
}
