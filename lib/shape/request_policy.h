/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy: an immutable snapshot of classes, rules and limits, and the decision for each
 * request. lib/config/policy_compile.c makes it from the policy file and the command line; hours of
 * the day are already resolved.
 *
 * Pure. Any number of lcores may read a snapshot.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/keyed_hash.h"
#include "base/request_head.h"
#include "base/types.h"
#include "shape/rate_limit.h"
#include "site/site_table.h"

#define NJ_CLASSES_MAX     32u /* including the default class */
#define NJ_CLASS_NAME_MAX  32u /* with the terminator */
#define NJ_CLASS_RULES_MAX 64u
#define NJ_LISTS_MAX       16u  /* lists of clients: categories of rte_acl */
#define NJ_PATH_PREFIX_MAX 256u /* with the terminator */

enum nj_action {
    NJ_ACTION_SERVE,
    NJ_ACTION_DROP,     /* for lists: SYNs are dropped; for a request: like RESET */
    NJ_ACTION_RESET,    /* RST, or RST_STREAM with REFUSED_STREAM */
    NJ_ACTION_FORBID,   /* 403 */
    NJ_ACTION_TOO_MANY, /* 429 with retry-after */
};

/* Caps per client (an address, a prefix, or a header's value); 0: no cap. */
struct nj_client_caps {
    uint32_t conns_max;      /* open at once, for an address or prefix, on all lcores */
    uint32_t streams_max;    /* requests open at once */
    uint32_t requests_per_s; /* above, after requests_burst of them: 429 */
    uint32_t requests_burst; /* 0: as many as requests_per_s */
};

struct nj_class {
    char name[NJ_CLASS_NAME_MAX];
    uint8_t slot;            /* stable across policies, < NJ_CLASSES_MAX */
    uint32_t slot_gen;       /* incremented when a class of another name gets the slot */
    struct nj_limit total;   /* of the whole class */
    struct nj_limit client;  /* of one client of the class */
    struct nj_limit request; /* of one response */
    uint64_t rate_after;     /* bytes at the start of a response that the request limit does not
                                apply to */
    struct nj_client_caps caps;
    enum nj_action action;  /* for requests of this class */
    uint32_t retry_after_s; /* of NJ_ACTION_TOO_MANY */
};

/* A request belongs to the class of the first rule whose conditions all match. */
struct nj_class_rule {
    uint8_t class_index;
    struct nj_str path_prefix;   /* of the normalized path (http/proto/path.h); empty: any */
    struct nj_str host;          /* :authority without its port, lower case; empty: any */
    uint32_t lists;              /* bit i: list i; the client is on one of these lists; 0: any
                                    client */
    struct nj_str header, value; /* a field of that name, with that value unless it is empty */
    struct nj_str subject;       /* of the client's certificate, "*": any certificate; empty: any
                                    client */
};

/* Networks that an operator blocks for a time, whatever the file says. Sorted out when a connection
 * is opened, and once when they change: requests of other connections cost nothing. */
#define NJ_BLOCKS_MAX 128u

struct nj_blocked_nets {
    uint32_t n;
    struct {
        uint64_t addr[2], mask[2]; /* as the 16 bytes of struct nj_addr stand in memory */
    } net[NJ_BLOCKS_MAX];
};
void nj_blocked_nets_add(struct nj_blocked_nets *b, const struct nj_net *net);

enum nj_client_by { NJ_CLIENT_BY_ADDRESS, NJ_CLIENT_BY_HEADER, NJ_CLIENT_BY_COOKIE };

struct nj_policy {
    uint64_t version;                        /* 1, 2, ... */
    struct nj_limit total;                   /* of the whole server */
    uint32_t n_classes;                      /* at least 1 */
    struct nj_class classes[NJ_CLASSES_MAX]; /* [0] is the default, without rules */
    uint32_t n_rules;
    struct nj_class_rule rules[NJ_CLASS_RULES_MAX];

    enum nj_client_by client_by;
    struct nj_str client_field; /* name of the header or cookie; without it the address is used */
    uint8_t client_bits4, client_bits6; /* prefix lengths of a client: default 32 and 64 */

    /* Lists of trusted proxies: they may name their clients, and their connections are not charged
     * to a client. 0: with client_by HEADER any peer may name its client. */
    uint32_t trusted;

    bool allow_only;                       /* refuse clients on none of the `allow` lists */
    uint32_t allow, deny;                  /* lists; deny wins over allow */
    enum nj_action deny_action;            /* DROP, RESET or FORBID */
    const struct nj_blocked_nets *blocked; /* NULL: none. Refused by DROP if that is deny_action,
                                              else by RESET; 403 behind a trusted proxy */

    const struct nj_sites *sites; /* NULL: none */
    const void *http;             /* struct nj_http_options, in force with it; NULL: as before */

    /* Returns the lists of an address, bit i for list i. NULL: no lists. */
    uint32_t (*lists)(const void *lists_ctx, const struct nj_addr *addr);
    const void *lists_ctx;
};

/* Decides by address alone, for a connection: SERVE, DROP or RESET (FORBID is for requests).
 * Refuses only if every request would be refused the same way: by `deny` or `allow`, or by leading
 * rules with lists as their only condition; or what is blocked. */
enum nj_action nj_policy_decide_conn(const struct nj_policy *p, const struct nj_addr *addr);
/* Can nj_policy_decide_conn() return anything but SERVE? If not, it need not be called. */
bool nj_policy_filters_conns(const struct nj_policy *p);

/* Does the policy forbid a response of that class to that address which began under another policy?
 * A class or a list may refuse it, but not one that also depends on the path or fields. */
bool nj_policy_forbids(const struct nj_policy *p, const struct nj_addr *addr,
                       const struct nj_class *class_of);
/* Is this the address of a client that is blocked? */
bool nj_policy_blocks(const struct nj_policy *p, const struct nj_addr *client);
/* Can nj_policy_forbids() or nj_policy_blocks() be true? */
bool nj_policy_forbids_any(const struct nj_policy *p);

/* The last key made from an address. Zeroed: empty. One thread only. */
struct nj_policy_memo {
    struct nj_addr addr;
    uint32_t bits; /* prefix lengths used */
    uint64_t key;
};

struct nj_policy_request {
    const struct nj_addr *addr;
    struct nj_str path; /* normalized (http/proto/path.h); empty: none */
    const struct nj_request_head *head;
    const struct nj_str *subject; /* of the client's verified certificate; NULL: none */
    struct nj_policy_memo *memo;  /* or NULL; always used with the same hash key */
};

struct nj_policy_verdict {
    const struct nj_class *class_of; /* in the snapshot; never NULL */
    enum nj_action action;
    uint64_t client_key;   /* keyed hash of client and class; never 0 */
    uint64_t client_hash;  /* keyed hash of the client, without the class */
    struct nj_addr client; /* address of the client; a proxy's, unless a trusted proxy names its
                              client */
    bool client_unknown;   /* a trusted proxy did not name its client */
    uint8_t scheme;        /* enum nj_scheme: that of the client's request, if a trusted proxy names
                              it; else NONE */
};

void nj_policy_decide_request(const struct nj_policy *p, const struct nj_hash_key *key,
                              const struct nj_policy_request *req, struct nj_policy_verdict *out);

/* The key of a client in a class, from nj_policy_verdict.client_hash. Never 0. */
uint64_t nj_policy_client_key_in_class(uint64_t client_hash, const struct nj_class *c);

/* Is the address a trusted proxy's? */
bool nj_policy_trusts(const struct nj_policy *p, const struct nj_addr *addr);

/* The key under which connections of an address are counted. Never 0. */
uint64_t nj_policy_conn_key(const struct nj_policy *p, const struct nj_hash_key *key,
                            const struct nj_addr *addr);

/* No limits, only the default class, no lists. */
extern const struct nj_policy nj_policy_none;
