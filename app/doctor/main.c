/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: parses its command line (getopt_long(3)) and prints the reason for a failure. */
#include "doctor/doctor.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "usage: nightjar doctor [--user NAME] [--lcores LIST] [--json]\n"
    "\n"
    "Checks whether this host is ready for nightjar on a NIC. Prints a line per check (ok, "
    "warning\n"
    "or error), followed by the commands that fix it. Changes nothing, and needs no root.\n"
    "\n"
    "  --user NAME     user that will run nightjar [the current user]\n"
    "  --lcores LIST   CPUs of the lcores, as for -l, e.g. 2-5,8 [the isolated CPUs, or else one\n"
    "                  CPU of each core but the first]\n"
    "  --json          print a JSON object: version, and lines with id, verdict, what, advice\n"
    "  --sysroot DIR   read DIR/sys, DIR/proc, DIR/etc and so on, for tests\n"
    "  --help\n"
    "\n"
    "Exit status: 0 without errors (warnings allowed); 1 if an error keeps nightjar from starting\n"
    "on a NIC; 2 if an option is invalid.\n";

enum { ASK_USER = 1, ASK_LCORES, ASK_JSON, ASK_SYSROOT, ASK_HELP };

static const struct option options[] = {
    {"user", required_argument, NULL, ASK_USER}, {"lcores", required_argument, NULL, ASK_LCORES},
    {"json", no_argument, NULL, ASK_JSON},       {"sysroot", required_argument, NULL, ASK_SYSROOT},
    {"help", no_argument, NULL, ASK_HELP},       {0},
};

int nj_doctor_main(int argc, char **argv)
{
    struct nj_doctor_config config = {0};
    int opt;

    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (opt) {
        case ASK_USER:
            config.user = optarg;
            break;
        case ASK_LCORES:
            config.lcores = optarg;
            break;
        case ASK_JSON:
            config.json = true;
            break;
        case ASK_SYSROOT:
            config.root = optarg;
            break;
        case ASK_HELP:
            fputs(help, stdout);
            return 0;
        default:
            fprintf(stderr, "nightjar: %s: %s; see nightjar doctor --help\n", argv[optind - 1],
                    opt == ':' ? "expected a value" : "there is no such option");
            return NJ_DOCTOR_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nightjar: %s: unexpected argument; see nightjar doctor --help\n",
                argv[optind]);
        return NJ_DOCTOR_USAGE;
    }
    char why[256] = "";
    int status = nj__doctor_run(&config, stdout, why, sizeof why);

    if (*why)
        fprintf(stderr, "nightjar: %s\n", why);
    return status;
}
