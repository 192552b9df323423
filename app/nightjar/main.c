/* SPDX-License-Identifier: BSD-3-Clause */
/* The nightjar program: serves a folder, or runs `nightjar doctor`. options.c parses the arguments.
 */
#include <string.h>

#include "doctor/doctor.h"
#include "options.h"

static const struct nj_app nightjar = {
    .name = "nightjar",
    .intro = "usage: nightjar [EAL arguments] -- --addr ADDRESS/PREFIX --root DIR [options]\n"
             "       nightjar --check [options]  check options and files, and exit\n"
             "       nightjar doctor [--user NAME] [--lcores LIST] [--json] [--help]\n"
             "                                   check whether this host is ready for a NIC\n"
             "\n"
             "Serves a folder over HTTP/2 and HTTP/1.1, in cleartext and, with\n"
             "--tls-cert, over TLS 1.3, from its own TCP stack on DPDK. Arguments before -- go to\n"
             "DPDK's EAL unchanged, except --preset and --print-preset. `nightjar -h` prints the\n"
             "arguments of the EAL.\n"
             "\n",
    .outro =
        "Each lcore (EAL -l) runs a shard of its own. Try it without a NIC or hugepages, as root:\n"
        "  nightjar -l 0,1 --preset tap,iface=nj0 -- --addr 198.18.0.2/24 --root /srv/www\n"
        "  ip addr add 198.18.0.1/24 dev nj0        (in another shell)\n"
        "  curl --http2-prior-knowledge http://198.18.0.2/\n",
};

int main(int argc, char **argv)
{
    struct nj_server_config config;

    if (argc > 1 && strcmp(argv[1], "doctor") == 0) {
        nj_app_unblock_signals();
        return nj_doctor_main(argc - 1, argv + 1);
    }
    nj_server_config_init(&config);
    return nj_app_run(argc, argv, &nightjar, &config);
}
