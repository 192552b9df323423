/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all options of the command line and all keys of the file of --config. The parsers of
 * both, the range checks, --help, docs/options.md and the manual pages are made from it. The
 * program compiles this file, too, so it may include lib/base only and constants of other layers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nj_option_kind {
    NJ_OPTION_EAL,    /* takes a value, before the --; eal_preset.c reads it; no field */
    NJ_OPTION_MODE,   /* the program prints something and exits; no field */
    NJ_OPTION_KEY,    /* of the file only; policy_file.c reads it; no field */
    NJ_OPTION_TEXT,   /* const char * */
    NJ_OPTION_LIST,   /* const char *[max]: each call appends one value */
    NJ_OPTION_SWITCH, /* bool; the kinds after it have a range */
    NJ_OPTION_NUMBER, /* of `width` bytes, from min to max */
    NJ_OPTION_SIZE,   /* of `width` bytes */
    NJ_OPTION_RATE,   /* uint64_t */
    NJ_OPTION_TIME,   /* double */
    NJ_OPTION_WORD, /* an enum: the index of the word in `expected` (separated by '|'), plus min */
};

/* What a reload does with a changed key of the file. */
enum nj_reload {
    NJ_RELOAD_NEVER, /* names it: the key needs a restart */
    NJ_RELOAD_TAKES, /* takes it */
    NJ_RELOAD_VALUE, /* takes it, but not a change from or to no value */
};

struct nj_option {
    const char *name;
    const char *section; /* of the file; NULL: command line only */
    const char *key;     /* in the section; NULL: the name, with '_' for '-' */
    enum nj_option_kind kind;
    bool in_policy;   /* policy_file.c reads the key, which is not a field as the option is */
    bool may_be_none; /* "none" means NJ_NONE of that width */
    bool may_be_zero; /* although it is less than `min` */
    bool may_repeat;  /* the key of NJ_OPTION_EAL and NJ_OPTION_KEY */
    enum nj_reload reload;
    const char *needs;      /* option without which the key has no effect */
    const char *hidden_by;  /* option with which it has none */
    uint16_t width, offset; /* of the field in struct nj_server_config, in bytes */
    double min, max;
    const char *expected; /* syntax of the value, for error messages, without range and "none" */

    const char *group;        /* name of the group that begins here; NULL: the group goes on */
    const char *value;        /* name of the value in help texts; a WORD shows its words instead */
    const char *default_text; /* NULL: off, or none is needed */
    const char *help;         /* without range and default */
};

#define NJ_OPTIONS_MAX 256 /* for arrays with one element per option */

extern const struct nj_option nj_options[];
extern const uint32_t nj_n_options;

/* Does nj_server_config_set() accept the option? */
bool nj_option_has_field(const struct nj_option *o);
bool nj_option_takes_value(const struct nj_option *o);
/* Is it on the command line: not a key alone? */
bool nj_option_is_named(const struct nj_option *o);
bool nj_option_may_repeat(const struct nj_option *o);

#define NJ_OPTION_KEY_BYTES 64
/* The key in the file, for an option with a section. Returns `key`. */
const char *nj_option_key(const struct nj_option *o, char key[NJ_OPTION_KEY_BYTES]);
/* Format a number in the unit of the option, for which 24 bytes are enough, or its word. */
void nj_option_format_value(const struct nj_option *o, double value, char *text, size_t n);
/* "reload", "restart", or for NJ_RELOAD_VALUE both. */
const char *nj_option_reload_text(const struct nj_option *o);
/* Format the range, "1280 to 9000", or of a list "up to 8 times"; "" if there is none to tell. */
void nj_option_format_range(const struct nj_option *o, char *text, size_t n_text);
