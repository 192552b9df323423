/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parsed file of the configuration: the policy (classes and limits with their hours, lists),
 * and settings that the command line does not set. Reference: nightjar.conf(5), docs/policy.md.
 *
 * nj_policy_compile() compiles it to a snapshot (struct nj_policy). The snapshot is a pure
 * function of the file, the command line, the minute of the day and the run-time changes.
 */
#pragma once

#include <nightjar/server.h>

#include "base/listener.h"
#include "config/class_limit_keys.h"
#include "config/ini_file_diagnostics.h"
#include "dpdk/address_list_lookup.h"
#include "shape/request_policy.h"

#define NJ_LIST_BYTES_MAX      (4u << 20)
#define NJ_LIST_FILES_MAX      64u
#define NJ_NETWORKS_MAX        65536u /* in all lists; 0.5 KB each once compiled */
#define NJ_POLICY_HOURS_MAX    32u    /* sections with hours, and classes with hours: 32 each */
#define NJ_POLICY_VALUES_MAX   32u    /* paths of a class, hosts of a class */
#define NJ_SITE_FOLDERS_MAX    1024u  /* of sites and paths */
#define NJ_SITE_FILES_MAX      2048u  /* of TLS, in all sites */
#define NJ_POLICY_EAL_MAX      64u    /* lines of [eal] */
#define NJ_POLICY_WHOLE_SERVER UINT8_MAX

struct nj_option;
struct nj_site_sections;

/* Minutes of the day [from, to), possibly past midnight. Equal values: the whole day. */
struct nj_hours {
    uint16_t from, to;
};

struct nj_class_def {
    char name[NJ_CLASS_NAME_MAX];
    const struct nj_ini_section *at; /* NULL: the default one has no section */
    uint8_t slot;
    uint32_t slot_gen; /* see struct nj_class */
    struct nj_hours hours;
    struct nj_class_keys keys;
    bool has_match; /* has a key path, host, list, header or tls_subject, valid or not */
    uint32_t n_paths, n_hosts, lists;
    struct nj_str path[NJ_POLICY_VALUES_MAX], host[NJ_POLICY_VALUES_MAX];
    struct nj_str header, value, subject;
};

/* Limits that apply during hours, in place of those of the class. */
struct nj_limit_override {
    uint8_t class_index; /* or NJ_POLICY_WHOLE_SERVER */
    struct nj_hours hours;
    struct nj_class_keys keys;
};

struct nj_policy_file {
    struct nj_ini *ini; /* owns the strings; without a file it is empty */
    uint32_t n_eal;
    const struct nj_ini_entry *eal[NJ_POLICY_EAL_MAX]; /* lines of [eal] */
    struct nj_listeners listeners;                     /* of [listen NAME] */
    const struct nj_ini_section *listener_at[NJ_LISTENERS_MAX];

    struct nj_class_keys server;
    uint32_t allow, deny;
    bool allow_only;
    enum nj_action deny_action;
    enum nj_client_by client_by;
    struct nj_str client_field;
    uint8_t client_bits4, client_bits6;

    uint32_t n_classes; /* [0] is the default */
    struct nj_class_def class_at[NJ_CLASSES_MAX];
    uint32_t n_overrides;
    struct nj_limit_override override[NJ_POLICY_HOURS_MAX];

    struct nj_site_sections *sites; /* site_sections.h; NULL without a file */

    uint32_t n_lists;
    char list[NJ_LISTS_MAX][NJ_CLASS_NAME_MAX];
    uint32_t n_list_files;
    char *list_file[NJ_LIST_FILES_MAX]; /* paths, to be opened again */
    uint32_t list_used; /* bit i: a class, allow, deny or trusted_proxy uses list i */
    uint32_t trusted;   /* the bit after those of the lists, if there are trusted proxies */
    struct nj_network *network;
    uint32_t n_networks;
};

/* Read the file; `path` NULL: the policy without a file. Returns NULL with the reasons in `faults`.
 * `config` has the values of the command line. Fields that it does not set are set from the file;
 * their strings live as long as the result. */
struct nj_policy_file *nj_policy_file_read(const char *path, struct nj_server_config *config,
                                           struct nj_diags *faults);
/* The same from text, which may not include files. Names of list files are relative to the folder
 * of `path`. */
struct nj_policy_file *nj_policy_file_parse(const char *path, const char *text, size_t n_bytes,
                                            struct nj_server_config *config,
                                            struct nj_diags *faults);
void nj_policy_file_free(struct nj_policy_file *f);
/* policy_value_source.c: an error of an option, "--NAME VALUE: ...", becomes one of its line,
 * "FILE:LINE: KEY VALUE: ...", unless `given`, the command line, sets the option. */
void nj_policy_file_name_source(const struct nj_policy_file *f,
                                const struct nj_server_config *given, char *why, size_t n);
/* The section of that name, e.g. "class a", or NULL. */
const struct nj_ini_section *nj__policy_find_section(const struct nj_policy_file *f,
                                                     const char *name);
/* The first line of a section (NULL: none) that sets the key, or NULL. `value`, if not NULL: the
 * line whose value that text begins with, else the last one. */
const struct nj_ini_entry *nj__policy_entry_in(const struct nj_policy_file *f,
                                               const struct nj_ini_section *s, const char *key,
                                               const char *value);
/* The same for the name of a section. */
const struct nj_ini_entry *nj__policy_find_entry(const struct nj_policy_file *f,
                                                 const char *section, const char *key);
/* The same for the key of an option. */
const struct nj_ini_entry *nj__policy_option_entry(const struct nj_policy_file *f,
                                                   const struct nj_option *o, const char *value);
/* policy_value_source.c: names in `notes` each key that has another value in `config`, which was
 * made with this file, than the server has `from` its start, with its file `first`, and which a
 * reload cannot change. Restores those values in `config`, except of keys that may change if they
 * are set. */
void nj_policy_file_keep_restart_keys(const struct nj_policy_file *f,
                                      const struct nj_policy_file *first,
                                      const struct nj_server_config *from,
                                      struct nj_server_config *config, struct nj_diags *notes);
/* Index of a class in class_at, or -1. */
int nj_policy_file_find_class(const struct nj_policy_file *f, const char *name);

/* Changes at run time, which override everything (limit_changes.h). */
struct nj_policy_changes {
    struct nj_class_keys server;
    struct nj_class_keys of[NJ_CLASSES_MAX]; /* by index in class_at */
};

/* Does a class or a section apply in some hours only? False without a file (NULL). */
bool nj_policy_file_has_hours(const struct nj_policy_file *f);

/* Which hours are active at a minute of the day (0 to 1439), as bits. Equal values give equal
 * policies. */
uint64_t nj_policy_active_hours_mask(const struct nj_policy_file *f, uint32_t minute);

/* Compile the policy of that moment, without its version and the list matcher. Strings belong to
 * the file. `flags` (the command line) and `changes` may be NULL. Pure. */
void nj_policy_compile(const struct nj_policy_file *f, const struct nj_server_config *flags,
                       const struct nj_policy_changes *changes, uint64_t hours,
                       struct nj_policy *out);

/* State of the parser. */
struct nj__policy_reader {
    struct nj_policy_file *f;
    const char *path;
    struct nj_diags *faults;
    struct nj_server_config *config;     /* of the program: its routes */
    struct nj_server_config file_config; /* values of the sections of options */
    const char *root; /* of the server, when all sections were read; NULL: none is set */
};

/* policy_class_match.c: parse a key that selects requests of a class, or its hours. */
void nj__policy_parse_match_key(struct nj__policy_reader *r, struct nj_class_def *c,
                                const struct nj_ini_entry *e);
/* Parse names of lists. Returns them as bits. */
uint32_t nj__policy_parse_list_names(struct nj__policy_reader *r, const struct nj_ini_entry *e);

/* settings_listeners.c: parse a key of [listen NAME]. False: no such key. */
bool nj__listener_parse_key(struct nj__policy_reader *r, uint32_t index, const char *key,
                            const struct nj_ini_entry *e);
/* Set ports that no key has set, and report two listeners at one address and port. */
void nj__listeners_check(struct nj__policy_reader *r);

/* policy_parse_util.c: helpers of the parsers. */

/* "80", "192.0.2.1:80" or "[2001:db8::1]:80". Returns `text`. */
#define NJ_LISTENER_TEXT_BYTES 64u
const char *nj__listener_format(const struct nj_listener *l, char text[NJ_LISTENER_TEXT_BYTES]);

/* "FILE:LINE: KEY = VALUE: expected EXPECTED" */
void nj__policy_report_bad_value(struct nj__policy_reader *r, const struct nj_ini_entry *e,
                                 const char *expected);
/* The next item of a comma-separated list, trimmed. False for an empty item. Advances `*at`, to
 * NULL after the last item. */
bool nj__policy_next_list_item(const char **at, struct nj_str *word);
/* The name closest to `word` (Levenshtein distance), or NULL if none is close. */
const char *nj__policy_closest_name(const char *word, const char *(*name)(void *ctx, uint32_t i),
                                    void *ctx);
/* What a word of another server, e.g. try_files, is here; or NULL. */
const char *nj__policy_our_word(const char *word);
/* Convert a value of the file to lower case in place. */
void nj__policy_to_lower(struct nj_str s);
bool nj__policy_is_valid_name(const char *text);

/* policy_network_lists.c: add networks, comma-separated, or those of a file. */
void nj__policy_add_networks(struct nj__policy_reader *r, uint32_t list,
                             const struct nj_ini_entry *e);
/* The same for trusted proxies. Call after all lists are declared. */
void nj__policy_add_trusted_proxies(struct nj__policy_reader *r, const struct nj_ini_entry *e);
void nj__policy_load_list(struct nj__policy_reader *r, uint32_t list, const struct nj_ini_entry *e);
