/* SPDX-License-Identifier: BSD-3-Clause */
/* PROGRAM [EAL arguments] -- [options]: the command line that nightjar and the examples share. */
#pragma once

#include <nightjar/server.h>

struct nj_app {
    const char *name;
    const char *intro, *outro; /* text before and after the options in --help */
};

/* Parse the command line into `config`, which is initialised and may hold routes, and run the
 * server. Main thread. Returns the exit status. */
int nj_app_run(int argc, char **argv, const struct nj_app *me, struct nj_server_config *config);

/* Give the thread the signal mask that the program was started with. Signals of the server are
 * blocked from before main(); a mode that runs no server is ended by them as other programs are.
 * Main thread. */
void nj_app_unblock_signals(void);
