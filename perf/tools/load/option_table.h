/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of nightjar-load's options. Its parser, --help, man/nightjar-load.1 and the completions
 * of shells are made from it. */
#pragma once

#include <stdint.h>

/* Codes of options without a letter. */
enum load_option_code {
    LOAD_OPTION_WINDOW = 256,
    LOAD_OPTION_TIMEOUT,
    LOAD_OPTION_SEED,
    LOAD_OPTION_JSON,
    LOAD_OPTION_CSV,
    LOAD_OPTION_IN_FLIGHT,
    LOAD_OPTION_IN_TURN,
    LOAD_OPTION_HTTP1,
    LOAD_OPTION_PRESET,
    LOAD_OPTION_VERSION,
    LOAD_OPTION_LINK, /* the server's options of this name, which its code parses */
};

struct load_option {
    int code; /* the letter, or one of the above */
    const char *name;
    const char *value;        /* its name in help texts; NULL: the option takes none */
    const char *default_text; /* NULL: off, or there is none */
    const char *help;
    const char *group; /* title of the group that begins here; NULL: the group goes on */
};

#define LOAD_OPTIONS_MAX 48 /* for arrays with one element per option */

extern const struct load_option load_option_table[];
extern const uint32_t load_n_options;

extern const char load_intro[], load_outro[]; /* paragraphs, each on a line of its own */
extern const char load_usage[], load_example[];
