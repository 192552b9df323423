/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sites of a server: which rules apply to a request, by its host and its plain path
 * (http/proto/path.h). lib/config makes the table from [site NAME] and [path NAME PATH].
 *
 * A host has the site with that name, else the one with the longest wildcard (`*.example.org` has
 * any name below example.org), else the default site, else none. Below it, sections are applied in
 * this order, and a later one overrides the keys that it has: the site, the longest suffix
 * (`*.iso`) that the path has, each prefix (`/iso/`) of the path from the shortest to the longest,
 * and the exact path (`/robots.txt`). The prefix `/iso/` has the path `/iso`, too. Fields of
 * responses are overridden by their names.
 *
 * The table is immutable. All rules of a path are combined when it is made, so a search is two
 * look-ups: of the host in a hash table, of the path in a sorted array.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/str.h"

#define NJ_SITES_MAX         4096u
#define NJ_SITE_PATHS_MAX    65536u /* sections of paths, in all sites */
#define NJ_SITE_RULES_MAX    262144u
#define NJ_SITE_TEMPLATE_MAX 255u /* bytes of the target of a redirect, with variables */
#define NJ_SITE_HOST_MAX     255u /* longest name (RFC 1035 2.3.4) */
#define NJ_SITE_FIELDS_MAX   16u /* fields that the rules of one path change; see response_head.h */
#define NJ_SITE_NAMED_MAX    64u /* error pages and types of the rules of one path */
#define NJ_SITE_TOKEN_MIN    22u /* characters of 128 bits in base64url (RFC 8555 8.3) */

/* What is done with a field of responses. */
enum nj_field_change { NJ_FIELD_ADD, NJ_FIELD_SET, NJ_FIELD_REMOVE };

struct nj_site_field {
    enum nj_field_change change;
    struct nj_str name, value; /* the name in lower case */
};

/* Bits of struct nj_site_rules.keys. */
enum nj_site_key {
    NJ_SITE_REDIRECT = 1 << 0,
    NJ_SITE_METHODS = 1 << 1,
    NJ_SITE_ALLOW = 1 << 2,
    NJ_SITE_DENY = 1 << 3,
    NJ_SITE_CACHE_CONTROL = 1 << 4,
    NJ_SITE_CORS = 1 << 5,
    NJ_SITE_HSTS = 1 << 6,
    NJ_SITE_TRY = 1 << 7,
    NJ_SITE_MISSING = 1 << 8,
    NJ_SITE_HANDLER = 1 << 9,
    NJ_SITE_CLIENT_CERT = 1 << 10,
    NJ_SITE_IDENTITY = 1 << 11, /* no key: requests over TLS are compared with their connection */
    NJ_SITE_ROOT = 1 << 16,
    NJ_SITE_ALIAS = 1 << 17,
    NJ_SITE_REWRITE = 1 << 18,
    NJ_SITE_INDEX = 1 << 19,
    NJ_SITE_LISTING = 1 << 20,
    NJ_SITE_DEFAULT_TYPE = 1 << 21,
    NJ_SITE_NAMED = 1 << 22, /* error pages, types by extension */
    NJ_SITE_LOG = 1 << 23,
    /* The name of the file is not the path with the index file of the server. */
    NJ_SITE_NAMES_FILES = NJ_SITE_ROOT | NJ_SITE_ALIAS | NJ_SITE_REWRITE | NJ_SITE_INDEX,
};

/* What TLS shows to clients of a site, and asks of them. A connection belongs to the identity of
 * its server name (RFC 6066 3), and a request to that of its host. If they differ in both members,
 * the request is misdirected (RFC 9110 15.5.20). Hosts without a site have `site` 0. */
struct nj_site_identity {
    uint64_t site;  /* hash of the first name of the site */
    uint64_t files; /* hash of names of files: certificates, keys, authorities; 0: no TLS */
};

/* In place of the name in `try_file`: the whole path, below `files`. */
#define NJ_SITE_TRY_WHOLE NJ_STR("/")

struct nj_sites;

/* The rules of a section, or, combined, those of a request. Strings belong to the owner of the
 * configuration. */
struct nj_site_rules {
    struct nj_sites *sites;   /* that have these rules; NULL: no key is set */
    uint32_t keys;            /* of enum nj_site_key: those that are set */
    uint32_t counts_at;       /* of the site, in bytes: site/site_counts.h; 0: it is not counted */
    struct nj_str prefix;     /* of the section with the redirect; of a site: "/" */
    uint16_t redirect_status; /* 301, 302, 307, 308; 0: no redirect */
    bool redirect_cleartext_only; /* requests over TLS are served */
    struct nj_str redirect_to;    /* with $host, $path and $rest */
    /* If there is no file: the name of another one below the root; else a redirect with 302, with
     * $path and $rest, whose prefix is `missing_prefix`. Empty: 404. */
    struct nj_str try_file, missing_to, missing_prefix;
    /* Index plus 1 of a route of the program that has the handler's name; 0: none. The handler gets
     * what follows the prefix, that of its section. */
    uint32_t handler;
    struct nj_str handler_prefix;
    struct nj_str methods;  /* "GET, HEAD"; empty: any */
    uint32_t allow, deny;   /* lists of clients, as bits; allow 0: any client */
    bool needs_client_cert; /* a request needs a connection with a certificate of the client */
    struct nj_site_identity identity; /* of the site */
    struct nj_str cache_control;      /* of files; empty: none */
    struct nj_str cors_origin;        /* access-control-allow-origin; empty: none */
    struct nj_str hsts;               /* strict-transport-security; empty: none */
    uint32_t n_fields;                /* at most NJ_SITE_FIELDS_MAX */
    const struct nj_site_field *fields;
    /* Rules that give the fields of responses another value have another one; 0: they change
     * none. */
    uint64_t fields_id;
    /* Files: "/FOLDER//", which the name of each begins with (store/file_root.h); empty: the
     * server's root. `root`: of error pages and `try_file`; `files`: of the path, of which `put`
     * replaces the first '/' and `n_strip` bytes more. */
    struct nj_str root, files, put;
    uint32_t n_strip;
    bool is_alias, listing;
    bool is_unlogged;         /* requests are not in the access log */
    struct nj_str index;      /* names, separated by one blank; empty: that of the server */
    const char *default_type; /* NULL: that of the server */
    /* Error pages by "404", names below `root`; types by ".ext"; an empty value removes. */
    uint32_t n_named; /* at most NJ_SITE_NAMED_MAX */
    const struct nj_site_field *named;
};

/* Are they the rules of the key `acme`? */
static inline bool nj_site_is_of_acme(const struct nj_site_rules *r)
{
    return nj_str_eq(r->try_file, NJ_SITE_TRY_WHOLE);
}

/* Do the rules of `acme` hide the file of the plain path? They do not if its end can be the token
 * of a challenge. Other rules hide none. */
bool nj_site_hides(const struct nj_site_rules *r, struct nj_str path);

/* Definitions, from which the table is made. */
struct nj_site_def {
    struct nj_str *names; /* lower case; "*.example.org" is a wildcard */
    uint32_t n_names;     /* 0: the default site */
    uint64_t own_files; /* struct nj_site_identity.files of hosts without a site; in all the same */
    struct nj_site_rules rules;
};
struct nj_path_def {
    uint32_t site;      /* index of its site */
    struct nj_str path; /* "/prefix/", "/exact", "*.suffix" */
    struct nj_site_rules rules;
};

/* Make the table, which copies the names of hosts and refers to the other strings of the
 * definitions. `fields_id`: that of the first rules; later ones have
 * higher ones, less than 2^32 of them. NULL without memory, or with more than
 * NJ_SITE_RULES_MAX combinations of paths and suffixes, or if the rules of a path change more than
 * NJ_SITE_FIELDS_MAX fields or have more than NJ_SITE_NAMED_MAX error pages and types; `why` says
 * which. */
struct nj_sites *nj_sites_new(const struct nj_site_def *sites, uint32_t n_sites,
                              const struct nj_path_def *paths, uint32_t n_paths, uint64_t fields_id,
                              const char **why);
void nj_sites_free(struct nj_sites *s);

/* The rules of a request; NULL: none. `authority` is that of the request, in any case and perhaps
 * with a port; `path` is plain, or empty if there is none: then those of the site. With TLS, hosts
 * without a site have rules, too, with NJ_SITE_IDENTITY only. Any thread. */
const struct nj_site_rules *nj_sites_find(const struct nj_sites *s, struct nj_str authority,
                                          struct nj_str path);

/* The rules that a later table has for a path of the site of earlier rules, which
 * struct nj_site_identity.site names; NULL: it has no such site, or denies nobody. `at`: begins
 * zeroed, and is kept for the next call. Any thread. */
struct nj_site_search {
    uint32_t site;    /* the index of the last one */
    uint32_t n_looks; /* at sites: the time that the calls have taken */
};
const struct nj_site_rules *nj_sites_find_again(const struct nj_sites *s, uint64_t site,
                                                struct nj_str path, struct nj_site_search *at);

/* The index of the site in the definitions; UINT32_MAX: none. For --explain. */
uint32_t nj_sites_index(const struct nj_sites *s, struct nj_str authority);

/* What the table begins with: the first name of the first site, if that is no wildcard and the site
 * has no paths. Names of less than 8 bytes are left to nj_sites_find(). */
struct nj_first_site {
    struct nj_str name; /* of UINT32_MAX bytes: none */
    const struct nj_site_rules *rules;
};

/* As memcmp() == 0, for 8 bytes or more. Where the strings are short, a call costs more. */
static inline bool nj_site_same_words(const char *a, const char *b, uint32_t n)
{
    uint64_t x, y;

    for (uint32_t i = 0; i + 8 < n; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        if (x != y)
            return false;
    }
    memcpy(&x, a + n - 8, 8);
    memcpy(&y, b + n - 8, 8);
    return x == y;
}

/* The rules of a request for the first site, if that has its authority as its name and has no
 * paths; else NULL, and nj_sites_find() tells. Many servers have one site. Any thread. */
static inline const struct nj_site_rules *nj_sites_first_rules(const struct nj_sites *s,
                                                               struct nj_str authority)
{
    const struct nj_first_site *first = (const void *)s;
    uint32_t n = authority.n_bytes;

    return n == first->name.n_bytes && nj_site_same_words(first->name.p, authority.p, n)
               ? first->rules
               : NULL;
}

/* Requests of a shard that use rules of the table, which must live until they have ended. hold and
 * drop: by the shard's lcore only. */
void nj_sites_hold(struct nj_sites *s, uint32_t shard);
void nj_sites_drop(struct nj_sites *s, uint32_t shard);
/* Any thread. 0 is final once no lcore can find the table. */
uint64_t nj_sites_n_held(const struct nj_sites *s);
