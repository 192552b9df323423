/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy file, understood: classes and limits with the hours in which they hold, lists, and
 * what the command line leaves to it. docs/policy.md is the reference.
 *
 * A snapshot (struct nj_policy) is made of it for a moment: a pure function of the file, the
 * command line, the minute of the day and what was changed at run time.
 */
#ifndef NJ_CONFIG_POLICY_FILE_H
#define NJ_CONFIG_POLICY_FILE_H

#include <nightjar/server.h>

#include "config/class_keys.h"
#include "config/ini_file.h"
#include "dpdk/address_acl.h"
#include "shape/request_class.h"

#define NJ_POLICY_BYTES_MAX  NJ_INI_BYTES_MAX
#define NJ_LIST_BYTES_MAX    (4u << 20)
#define NJ_NETWORKS_MAX      65536u /* of all lists; 0.5 KB each, once built */
#define NJ_POLICY_HOURS_MAX  32u    /* sections with hours, and classes with hours: 32 each */
#define NJ_POLICY_VALUES_MAX 32u    /* paths of a class, hosts of a class */
#define NJ_POLICY_SERVER     UINT8_MAX

/* When something holds: from the first minute of the day to the last but one, perhaps past
 * midnight. The same: always. */
struct nj_hours {
    uint16_t from, to;
};

struct nj_file_class {
    char name[NJ_CLASS_NAME_MAX];
    uint32_t line;
    uint8_t slot;
    uint32_t owner; /* see struct nj_class */
    struct nj_hours hours;
    struct nj_class_keys keys;
    bool has_match; /* path, host, list or header, right or wrong */
    bool lacks;     /* a line of it has a fault and was left out */
    uint32_t n_paths, n_hosts, lists;
    struct nj_str path[NJ_POLICY_VALUES_MAX], host[NJ_POLICY_VALUES_MAX];
    struct nj_str header, value;
};

/* Keys that win within hours. */
struct nj_file_override {
    uint8_t class_index; /* or NJ_POLICY_SERVER */
    struct nj_hours hours;
    struct nj_class_keys keys;
};

struct nj_policy_file {
    struct nj_ini *ini; /* the strings; NULL: there is no file */

    struct nj_class_keys server;
    uint32_t allow, deny;
    bool allow_only;
    enum nj_action deny_action;
    enum nj_client_by client_by;
    struct nj_str client_field;
    uint8_t client_bits4, client_bits6;

    uint32_t n_classes; /* [0] is the default */
    struct nj_file_class class_at[NJ_CLASSES_MAX];
    uint32_t n_overrides;
    struct nj_file_override override[NJ_POLICY_HOURS_MAX];

    uint32_t n_lists;
    char list[NJ_LISTS_MAX][NJ_CLASS_NAME_MAX];
    uint32_t list_used; /* bit i: somebody asks for it */
    uint32_t trusted;   /* the bit behind those of lists, when there are trusted proxies */
    struct nj_network *network;
    uint32_t n_networks;
};

/* Read it. `path` NULL: the policy of no file. NULL when something is wrong, which `faults` tells.
 * `config` comes with what the command line said; to what that was silent about, [files], [limits]
 * and [log] are added, with strings that live as long as the file. */
struct nj_policy_file *nj_policy_file_read(const char *path, struct nj_server_config *config,
                                           struct nj_faults *faults);
/* The same of text; list files are looked for beside `path`. */
struct nj_policy_file *nj_policy_file_parse(const char *path, const char *text, size_t n_bytes,
                                            struct nj_server_config *config,
                                            struct nj_faults *faults);
void nj_policy_file_free(struct nj_policy_file *f);
/* The place of a class in class_at; -1: there is none of that name. */
int nj_policy_file_class(const struct nj_policy_file *f, const char *name);

/* What was said at run time: wins over everything, until the file is read again. */
struct nj_policy_changes {
    struct nj_class_keys server;
    struct nj_class_keys of[NJ_CLASSES_MAX]; /* by index in class_at */
};

/* Which hours hold at a minute of the day (0 to 1439): equal values, equal policies. */
uint64_t nj_policy_file_hours(const struct nj_policy_file *f, uint32_t minute);

/* The policy of that moment, but for its version and for the search in lists. Strings are the
 * file's. Pure. `flags`, `changes` may be NULL. */
void nj_policy_file_make(const struct nj_policy_file *f, const struct nj_server_config *flags,
                         const struct nj_policy_changes *changes, uint64_t hours,
                         struct nj_policy *out);

/* What reads it. */
struct nj__reader {
    struct nj_policy_file *f;
    const char *path;
    struct nj_faults *faults;
    uint32_t n_room;              /* for networks */
    struct nj_server_config said; /* by [files], [limits] and [log] */
};

/* "FILE:LINE: KEY = VALUE: expected EXPECTED" */
void nj__policy_expected(struct nj__reader *r, const struct nj_ini_entry *e, const char *expected);

/* policy_class.c: what a request of a class is like. False: there is no such key. */
bool nj__policy_read_match(struct nj__reader *r, struct nj_file_class *c, const char *key,
                           const struct nj_ini_entry *e);
/* Names of lists, as bits. */
uint32_t nj__policy_read_lists(struct nj__reader *r, const struct nj_ini_entry *e);

/* policy_words.c: shared by what reads the file. */

/* The next word of a list between commas, without space around it; empty ones are an error (false,
 * with n_bytes 0). `*at` moves on; NULL behind the last. */
bool nj__policy_word(const char **at, struct nj_str *word);
/* Which of the names is meant by `word`? NULL: none is near. */
const char *nj__policy_nearest(const char *word, const char *(*name)(void *ctx, uint32_t i),
                               void *ctx);
/* A value of the file, made lower case where it stands. */
void nj__policy_lower(struct nj_str s);
bool nj__policy_is_name(const char *text, size_t n);

/* policy_lists.c */
void nj__policy_list_networks(struct nj__reader *r, uint32_t list, const struct nj_ini_entry *e);
/* Networks of trusted proxies, between commas; all lists are declared. */
void nj__policy_trust(struct nj__reader *r, const char *networks, const char *file, uint32_t line);
void nj__policy_list_file(struct nj__reader *r, uint32_t list, const struct nj_ini_entry *e);

#endif
