/* SPDX-License-Identifier: BSD-3-Clause */
/* PROGRAM [EAL arguments] -- [options]: the command line that nightjar and the examples share. */
#pragma once

#include <nightjar/server.h>

struct nj_option;

struct nj_app {
    const char *name;
    const char *intro, *outro; /* text before and after the topics in --help */
};

/* An option of the command line, with its value. */
struct nj_given {
    const struct nj_option *option;
    const char *value; /* NULL: it takes none */
};

/* Parse argv[1] to argv[argc - 1]. `given`: NULL, or room for as many; what there is more stays as
 * it is. Returns 0, or -1 after a line on stderr. Main thread. */
int nj_app_parse_options(int argc, char **argv, struct nj_server_config *config,
                         struct nj_given *given);

/* Parse the command line into `config`, which is initialised and may hold routes, and run the
 * server. Main thread. Returns the exit status. */
int nj_app_run(int argc, char **argv, const struct nj_app *me, struct nj_server_config *config);

/* convert.c: `nightjar convert`, argv[0]: print the file that equals a command line. Returns the
 * exit status. */
int nj_app_convert(int argc, char **argv);

/* Give the thread the signal mask that the program was started with. Signals of the server are
 * blocked from before main(); a mode that runs no server is ended by them as other programs are.
 * Main thread. */
void nj_app_unblock_signals(void);
