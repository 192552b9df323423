/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a site share: file_server.c finds what is asked for, file_response.c says it.
 */
#ifndef NJ_HTTP_FILES_FILE_SERVER_INTERNAL_H
#define NJ_HTTP_FILES_FILE_SERVER_INTERNAL_H

#include "http/files/file_body.h"
#include "http/files/file_meta_cache.h"
#include "http/files/file_server.h"
#include "http/proto/negotiate.h"
#include "http/proto/path_cache.h"
#include "http/proto/preconditions.h"
#include "http/proto/range.h"

/* Buckets of the table of OPENs that are out. */
#define NJ__OPENS 256u

/* The fields of a request that the site looks at, together, as far as they are kept while it waits;
 * beyond: 431. Peers send a few hundred bytes at most. */
#define NJ__ASKED_BYTES 4096u

/* What the file that is being asked for is to the request. */
enum nj__stage {
    NJ__STAGE_FILE,    /* what it names */
    NJ__STAGE_VARIANT, /* that in another coding */
    NJ__STAGE_LIST,    /* the list of a folder */
    NJ__STAGE_ERROR,   /* the page that goes with a failure */
};

/* What a reply depends on besides the file. */
struct nj__asker {
    struct nj_txn *txn;
    enum nj__stage stage;
    bool had_slash;               /* asked for "dir/" */
    bool json;                    /* wants a list as JSON */
    bool has_conditions;          /* any of them, or a range */
    uint8_t siblings;             /* of the file: other codings there are */
    uint8_t coding;               /* of VARIANT */
    uint16_t status;              /* of ERROR */
    uint64_t size_bytes;          /* of ERROR 416: of what was asked for */
    struct nj_str type;           /* of VARIANT: the file's, without the coding */
    uint8_t without;              /* codings whose siblings were none */
    const struct nj_field *extra; /* n_extra fields of a handler, which live as long as txn */
    uint32_t n_extra;
    struct nj_str accept_encoding; /* looked at only where there is something to choose */
    struct nj_str query;
    struct nj_conditions conditions; /* last, and valid only with has_conditions */
};

struct nj_site {
    struct nj_site_config config;
    struct nj_site_options options;
    struct nj__files files;
    struct nj_object_table *table;
    struct nj_pool exchanges;
    uint64_t stamp;                     /* the last that was given */
    struct nj_str index, cache_control; /* of options */
    struct nj_targets targets;
    /* Of the request at hand; too big for the stack of a deep call. */
    char name[NJ_PATH_MAX];       /* that follows from it: of another coding, of a list */
    char joined[NJ__ASKED_BYTES]; /* fields that came in several lines */
    struct nj_list opens[NJ__OPENS];
};

/* Fields that a file depends on. */
#define NJ__CONDITIONS                                                                             \
    (1u << NJ_HEADER_IF_MATCH | 1u << NJ_HEADER_IF_MODIFIED_SINCE |                                \
     1u << NJ_HEADER_IF_NONE_MATCH | 1u << NJ_HEADER_IF_RANGE |                                    \
     1u << NJ_HEADER_IF_UNMODIFIED_SINCE | 1u << NJ_HEADER_RANGE)
#define NJ__LOOKED_AT (NJ__CONDITIONS | 1u << NJ_HEADER_ACCEPT | 1u << NJ_HEADER_ACCEPT_ENCODING)

/* Keep them for `who`. False: there is more of them than we keep. */
bool nj__keep_fields(struct nj_site *site, const struct nj_request_head *head,
                     struct nj__asker *who);

static inline bool nj__read_fields(struct nj_site *site, const struct nj_request_head *head,
                                   struct nj__asker *who)
{
    return !(head->header_set & NJ__LOOKED_AT) || nj__keep_fields(site, head, who);
}

/* What is to be said of a file: 200, 206, 304, 412 or 416. */
struct nj__verdict {
    uint16_t status;
    struct nj_validators validators; /* of the representation */
    struct nj_ranges ranges;         /* of 206 */
};

void nj__judge(const struct nj__asker *who, const struct nj_known *known, struct nj__verdict *out);

/* Replies. Each ends the exchange: nothing that belongs to it may be touched afterwards. */

/* An error, with a line of text and what the status has to come with. */
void nj__reply_status(const struct nj__asker *who, uint16_t status);
/* 503: no room for what would have to be remembered. */
void nj__reply_busy(const struct nj__asker *who);
void nj__reply_options(const struct nj__asker *who);
void nj__reply_redirect(const struct nj__asker *who, const char *name);
/* What nj__judge() said, 200, 206 or 304, of a file or of a list. */
void nj__reply_object(struct nj_site *site, const struct nj__asker *who, struct nj_known *known,
                      const struct nj__verdict *verdict);
/* A page that goes with who->status. */
void nj__reply_page(struct nj_site *site, const struct nj__asker *who,
                    const struct nj_known *known);

#endif
