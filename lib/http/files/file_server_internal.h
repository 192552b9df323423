/* SPDX-License-Identifier: BSD-3-Clause */
/* Types shared by the parts of the file server: file_server.c resolves a request to an object,
 * file_response.c sends the response, request_fields.c parses fields. One lcore only. Each
 * nj__respond_*() function ends the request. */
#pragma once

#include "http/files/file_body.h"
#include "http/files/file_lookup_cache.h"
#include "http/files/file_server.h"
#include "http/files/mime_type.h"
#include "http/proto/negotiate.h"
#include "http/proto/path_cache.h"
#include "http/proto/preconditions.h"
#include "http/proto/range.h"

/* Hash buckets of pending OPENs. */
#define NJ__OPEN_BUCKETS 256u

/* Limit of the field bytes that are stored while a request waits. NJ_RANGES_MAX ranges of a file of
 * 1 TB fit. Beyond, a field is ignored or the request is refused: request_fields.c. */
#define NJ__REQ_FIELDS_MAX 8192u

/* The relation of the file being looked up to the request. */
enum nj__stage {
    NJ__STAGE_FILE,    /* the file that the request names */
    NJ__STAGE_VARIANT, /* its precompressed sibling */
    NJ__STAGE_LISTING, /* a directory listing */
    NJ__STAGE_ERROR,   /* the error page of a status */
};

/* Parsed request: all that a response depends on besides the file. */
struct nj__file_request {
    struct nj_txn *txn;
    enum nj__stage stage;
    bool had_slash;               /* the target was "dir/" */
    bool is_handlers;             /* a handler sends the file */
    bool has_tried;               /* the file that the site has in place of an absent one */
    bool json;                    /* LISTING: as JSON */
    bool has_conditions;          /* has a precondition or a range */
    uint8_t siblings;             /* of the file: available codings */
    uint8_t coding;               /* VARIANT: enum nj_coding */
    uint16_t status;              /* ERROR: the status */
    uint64_t size_bytes;          /* ERROR 416: size of the requested file */
    struct nj_str type;           /* VARIANT: content-type of the uncompressed file */
    uint64_t sibling_hash;        /* VARIANT: of the version that was made from the file */
    uint8_t missing_codings;      /* codings whose siblings turned out to be absent, or of another
                                     version of the file */
    const struct nj_field *extra; /* n_extra fields of a handler; live as long as txn */
    uint32_t n_extra;
    struct nj_str accept_encoding; /* parsed only if there are siblings */
    struct nj_str accept;          /* parsed only for a listing */
    struct nj_str path;            /* plain; empty without rules of a site */
    struct nj_str query;
    struct nj_preconditions conditions; /* valid only with has_conditions */
    struct {                            /* valid only with `path` */
        uint32_t n_index;    /* bytes of the name of the site's index file at the end of the name */
        struct nj_str index; /* names of index files that have not been tried */
        struct nj_str type;  /* that the site has for the file; p NULL: none */
    } of_site;
};

struct nj_file_wait {
    struct nj_file_server *fs;
    struct nj__file_job *job;         /* the job it waits for, or NULL */
    struct nj_list link;              /* in job->waiters */
    void (*on_end)(struct nj_txn *t); /* the transaction's, which is ours while it waits */
    struct nj__file_request req;
    bool *freed; /* set when the wait ends while a caller up the stack uses it */
    char strings[NJ_PATH_MAX + NJ__REQ_FIELDS_MAX]; /* bytes of the stored query and fields */
};

struct nj_file_server {
    struct nj_file_server_config config;
    const struct nj_file_server_options *options;
    struct nj_mime_options mime; /* of options, with a default_type: unknown extensions have it */
    struct nj__file_bodies files;
    struct nj_lookup_cache *meta_cache;
    struct nj_pool wait_pool;
    uint64_t stamp;                     /* last stamp issued */
    struct nj_str index, cache_control; /* from options */
    struct nj_path_cache paths;
    /* Scratch space of the current request; too big for the stack. */
    char name[NJ_PATH_MAX];          /* derived name: of a sibling or a listing */
    char joined[NJ__REQ_FIELDS_MAX]; /* joined values of repeated fields */
    struct nj_ranges ranges;         /* of the response plan */
    struct nj_validators coded;      /* of the response plan, for a coded representation */
    struct nj_list opens[NJ__OPEN_BUCKETS];
};

/* Fields that affect the response of a file. */
#define NJ__PRECOND_FIELDS                                                                         \
    (1u << NJ_HEADER_IF_MATCH | 1u << NJ_HEADER_IF_MODIFIED_SINCE |                                \
     1u << NJ_HEADER_IF_NONE_MATCH | 1u << NJ_HEADER_IF_RANGE |                                    \
     1u << NJ_HEADER_IF_UNMODIFIED_SINCE | 1u << NJ_HEADER_RANGE)
#define NJ__USED_FIELDS                                                                            \
    (NJ__PRECOND_FIELDS | 1u << NJ_HEADER_ACCEPT | 1u << NJ_HEADER_ACCEPT_ENCODING)

/* Parses these fields. False: one of them is too long and must not be ignored: 431. */
bool nj__collect_present_fields(struct nj_file_server *fs, const struct nj_request_head *head,
                                struct nj__file_request *req);

static inline bool nj__collect_fields(struct nj_file_server *fs, const struct nj_request_head *head,
                                      struct nj__file_request *req)
{
    return !(head->header_set & NJ__USED_FIELDS) || nj__collect_present_fields(fs, head, req);
}

/* The evaluated response to a request for a file: 200, 206, 304, 412 or 416. */
struct nj__response_plan {
    uint16_t status;
    const struct nj_validators *validators; /* of the selected representation; as `ranges` */
    const struct nj_ranges *ranges;         /* for 206; valid until the next plan */
};

void nj__eval_request(struct nj_file_server *fs, const struct nj__file_request *req,
                      const struct nj_file_meta *meta, struct nj__response_plan *out);

/* Copies a request, with its strings, so that it can wait. NULL: no room is left. */
struct nj_file_wait *nj__file_wait_new(struct nj_file_server *fs,
                                       const struct nj__file_request *req);

/* A compressed file has no precompressed sibling. */
bool nj__may_have_siblings(const struct nj_file_server *fs, const struct nj_file_name *name);
/* Converts a job's result, with the response fields derived from it. `n_path`: bytes of its path.
 */
void nj__fill_meta(const struct nj_file_server *fs, const struct nj_file_job *job, uint32_t n_path,
                   struct nj_file_meta *out);

/* --- responses --- */

/* Each ends the request, which must not be touched afterwards. */

/* Sends an error with one line of text and the field that the status requires; or, for 302, the
 * redirect that the rules of the site have for absent files. */
void nj__respond_plain_error(const struct nj__file_request *req, uint16_t status);
/* Sends 503: no waiting slot, job or body is left. */
void nj__respond_busy(const struct nj__file_request *req);
void nj__respond_options(const struct nj__file_request *req);
void nj__respond_redirect(const struct nj__file_request *req, struct nj_str name);
/* Sends 200, 206 or 304 with a file or a listing, as nj__eval_request() decided; `name` is the
 * file's. */
void nj__respond_object(struct nj_file_server *fs, const struct nj__file_request *req,
                        struct nj_file_meta *meta, const struct nj__response_plan *plan,
                        const struct nj_file_name *name);
/* Sends the error page for the request's status. */
void nj__respond_error_page(struct nj_file_server *fs, const struct nj__file_request *req,
                            const struct nj_file_meta *meta);
