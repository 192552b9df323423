/* SPDX-License-Identifier: BSD-3-Clause */
/* The nightjar program: serves a folder, or runs `nightjar doctor`, `nightjar convert`,
 * `nightjar ctl` or `nightjar top`. options.c parses the arguments. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "options.h"

static const struct nj_app nightjar = {
    .name = "nightjar",
    .intro =
        "usage: nightjar --config FILE             serve what nightjar.conf(5) describes\n"
        "       nightjar [EAL arguments] -- [options]\n"
        "       nightjar --check [options]         check options and files, and exit\n"
        "       nightjar convert [EAL arguments] -- [options]\n"
        "                                          print the file that equals them\n"
        "       nightjar doctor [--help]           is this host ready for a NIC?\n"
        "       nightjar ctl [--help]              look into a running server, change its limits\n"
        "       nightjar top                       watch it on the terminal\n"
        "\n"
        "Serves a folder over HTTP/2 and HTTP/1.1, in cleartext and over TLS 1.3, from its own\n"
        "TCP stack on DPDK.\n"
        "\n",
    .outro =
        "Try it without a NIC or hugepages, as root (then: ip addr add 198.18.0.1/24 dev nj0):\n"
        "  nightjar -l 0,1 --preset tap,iface=nj0 -- --addr 198.18.0.2/24 --root /srv/www\n"
        "Check a file, and serve:\n"
        "  nightjar --check --config /etc/nightjar/nightjar.conf\n"
        "  nightjar --config /etc/nightjar/nightjar.conf\n",
};

/* Become nightjar-ctl (app/ctl/ctl.h), which is beside this program. `argv`: its arguments, after
 * any text. Returns the exit status if it cannot be run. */
static int become_ctl(char **argv)
{
    static const char name[] = "nightjar-ctl";
    char path[PATH_MAX + sizeof name];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n > 0) {
        memcpy(path + n, name, sizeof name);
        execv(path, argv);
    }
    fprintf(stderr, "nightjar: cannot run %s: %s\n", n > 0 ? path : name, strerror(errno));
    return 3; /* as if no server was found */
}

int main(int argc, char **argv)
{
    struct nj_server_config config;

    if (argc > 1 && strcmp(argv[1], "doctor") == 0) {
        nj_app_unblock_signals();
        return nj_doctor_main(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "convert") == 0) {
        nj_app_unblock_signals();
        return nj_app_convert(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "ctl") == 0) {
        nj_app_unblock_signals();
        return become_ctl(argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "top") == 0) {
        nj_app_unblock_signals();
        return become_ctl(argv); /* its command is "top" */
    }
    nj_server_config_init(&config);
    return nj_app_run(argc, argv, &nightjar, &config);
}
