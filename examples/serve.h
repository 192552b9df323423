/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of main() of some examples. */
#include <stdio.h>

#include <nightjar/nightjar.h>

/* Serves these routes. Arguments of the program are an address, then that which `what` describes
 * (NULL: none), which is stored in `word`, then those of DPDK's EAL. Returns the exit status. */
static int serve(int argc, char **argv, const char *what, const char **word,
                 const struct nj_route *routes, unsigned n_routes)
{
    struct nj_server_config config;
    int n_own = what ? 2 : 1;

    if (argc <= n_own) {
        fprintf(stderr, "usage: %s ADDRESS/PREFIX %s%s[EAL ARGUMENT...]\n", argv[0],
                what ? what : "", what ? " " : "");
        return 2;
    }
    if (what)
        *word = argv[2];
    nj_server_config_init(&config);
    config.addr[0] = argv[1];
    config.routes = routes;
    config.n_routes = n_routes;
    argv[n_own] = argv[0]; /* the EAL expects the name of the program before its arguments */
    return nj_server_run(argc - n_own, argv + n_own, &config);
}
