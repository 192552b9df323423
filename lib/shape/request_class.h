/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may have what: a snapshot of the operator's wishes, immutable while it is in use, and the
 * question that is put to it for every request. Made from the policy file and the command line by
 * lib/config/policy_file.c; hours of the day are already decided when a snapshot is made.
 *
 * Pure; any number of lcores read one snapshot.
 */
#ifndef NJ_SHAPE_REQUEST_CLASS_H
#define NJ_SHAPE_REQUEST_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "base/hash.h"
#include "base/request_head.h"
#include "base/types.h"
#include "shape/rate_limit.h"

#define NJ_CLASSES_MAX     32u /* the default class among them */
#define NJ_CLASS_NAME_MAX  32u /* with the terminator */
#define NJ_CLASS_RULES_MAX 64u
#define NJ_LISTS_MAX       16u  /* lists of clients: categories of rte_acl */
#define NJ_PATH_PREFIX_MAX 256u /* with the terminator */

enum nj_action {
    NJ_ACTION_SERVE,
    NJ_ACTION_DROP,   /* silence: for lists, SYNs are dropped; for a request as RESET */
    NJ_ACTION_RESET,  /* RST, or RST_STREAM with REFUSED_STREAM */
    NJ_ACTION_FORBID, /* 403 */
    NJ_ACTION_LATER,  /* 429 with retry-after */
};

/* For each client (an address or a network, or a header's value); 0: no limit. */
struct nj_client_caps {
    uint32_t conns_max;      /* open at once, of one address or network, all lcores together */
    uint32_t streams_max;    /* requests open at once */
    uint32_t requests_per_s; /* beyond, after requests_burst of them: 429 */
    uint32_t requests_burst; /* 0: as many as requests_per_s */
};

struct nj_class {
    char name[NJ_CLASS_NAME_MAX];
    uint8_t slot;            /* keeps its number when the policy changes, < NJ_CLASSES_MAX */
    uint32_t owner;          /* of the slot: counts up when a class of another name gets it */
    struct nj_limit total;   /* of all of the class */
    struct nj_limit client;  /* of one client in it, whatever it opens */
    struct nj_limit request; /* of one response */
    uint64_t rate_after;     /* the first bytes of a response that the request limit spares */
    struct nj_client_caps caps;
    enum nj_action action;  /* for requests of this class */
    uint32_t retry_after_s; /* of NJ_ACTION_LATER */
};

/* A request is of the first class that has a rule where everything that is set matches. */
struct nj_class_rule {
    uint8_t class_index;
    struct nj_str path_prefix;   /* of the plain path (http/path.h); empty: any */
    struct nj_str host;          /* :authority without its port, lower case; empty: any */
    uint32_t lists;              /* bit i: the client is on list i, or on another one of these;
                                  * 0: any client */
    struct nj_str header, value; /* a field of that name, with that value unless it is empty */
};

enum nj_client_by { NJ_CLIENT_BY_ADDRESS, NJ_CLIENT_BY_HEADER, NJ_CLIENT_BY_COOKIE };

struct nj_policy {
    uint64_t version;                        /* 1, 2, ... */
    struct nj_limit total;                   /* of the whole server */
    uint32_t n_classes;                      /* at least 1 */
    struct nj_class classes[NJ_CLASSES_MAX]; /* [0] is the default, for what no rule takes */
    uint32_t n_rules;
    struct nj_class_rule rules[NJ_CLASS_RULES_MAX];

    enum nj_client_by client_by;
    struct nj_str client_field; /* name of the header or cookie; who lacks it goes by address */
    uint8_t client_bits4, client_bits6; /* of the address that make a client: 32 and 64 */

    /* Lists of proxies that are believed when they name their clients, and whose connections are
     * held against nobody. 0: with client_by HEADER any peer is believed. */
    uint32_t trusted;

    bool allow_only;            /* who is on none of `allow` is refused */
    uint32_t allow, deny;       /* lists; deny wins */
    enum nj_action deny_action; /* DROP, RESET or FORBID */

    /* On which lists an address is, bit i for list i. NULL: there are none. */
    uint32_t (*lists)(const void *lists_ctx, const struct nj_addr *addr);
    const void *lists_ctx;
};

/* Before anything is known but the address: SERVE, DROP or RESET (FORBID is said to requests).
 * Not SERVE where every request would meet the same: by `deny` and `allow`, or as the first rules
 * ask for lists and nothing else. */
enum nj_action nj_policy_admit(const struct nj_policy *p, const struct nj_addr *addr);
/* Is there anybody for whom that is not SERVE? False: nobody needs to be asked about. */
bool nj_policy_has_door(const struct nj_policy *p);

/* The last key that was made by address, and of what. Zeroed: there is none. One thread's. */
struct nj_policy_memo {
    struct nj_addr addr;
    uint32_t bits; /* of its networks */
    uint64_t key;
};

struct nj_policy_request {
    const struct nj_addr *addr;
    struct nj_str path; /* plain (http/path.h); empty: it has none */
    const struct nj_request_head *head;
    struct nj_policy_memo *memo; /* or NULL; always with the same key */
};

struct nj_policy_verdict {
    const struct nj_class *class_of; /* of the snapshot; never NULL */
    enum nj_action action;
    uint64_t client_key;   /* keyed hash of who asks and of the class; never 0 */
    uint64_t asker;        /* ... of who asks, whatever the class */
    struct nj_addr client; /* the address that asks; a proxy's, unless it is trusted and tells */
    bool unnamed;          /* a trusted proxy asks, and it is not told for whom */
};

void nj_policy_decide(const struct nj_policy *p, const struct nj_hash_key *key,
                      const struct nj_policy_request *req, struct nj_policy_verdict *out);

/* The key of a client in a class, from nj_policy_verdict.asker, its key without one. Never 0. */
uint64_t nj_policy_key_in(uint64_t asker, const struct nj_class *c);

/* Is it a trusted proxy? */
bool nj_policy_trusts(const struct nj_policy *p, const struct nj_addr *addr);

/* The key of a client by its address alone: connections are counted under it. Never 0. */
uint64_t nj_policy_client_of(const struct nj_policy *p, const struct nj_hash_key *key,
                             const struct nj_addr *addr);

/* No limit, no class but the default, no list. */
extern const struct nj_policy nj_policy_none;

#endif
