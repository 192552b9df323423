/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and options of nightjar ctl, for its parser, --help, nightjar-ctl(1) and the
 * completions of shells. */
#pragma once

enum ctl_command_id {
    CTL_CMD_STATUS,
    CTL_CMD_LIMITS,
    CTL_CMD_CLIENTS,
    CTL_CMD_CLASSES,
    CTL_CMD_SHARDS,
    CTL_CMD_TRANSFERS,
    CTL_CMD_KILL,
    CTL_CMD_BLOCKS,
    CTL_CMD_BLOCK,
    CTL_CMD_UNBLOCK,
    CTL_CMD_GET,
    CTL_CMD_RELOAD,
    CTL_CMD_DIFF,
    CTL_CMD_METRICS,
    CTL_CMD_VERSION,
    CTL_CMD_CAPTURE,
    CTL_CMD_TRACE,
    CTL_CMD_TOP,
    CTL_N_COMMANDS
};

struct ctl_command {
    const char *name, *arguments, *help;
    int argc_min, argc_max;
    double timeout_s; /* without --timeout */
};
extern const struct ctl_command ctl_commands[CTL_N_COMMANDS];

enum ctl_option_id {
    CTL_OPT_SOCKET,
    CTL_OPT_PID,
    CTL_OPT_JSON,
    CTL_OPT_TIMEOUT,
    CTL_OPT_INTERVAL,
    CTL_OPT_ONCE,
    CTL_OPT_FOR,
    CTL_OPT_CLIENT,
    CTL_OPT_PORT,
    CTL_OPT_SNAPLEN,
    CTL_OPT_SECONDS,
    CTL_OPT_PACKETS,
    CTL_OPT_REQUESTS,
    CTL_OPT_HELP,
    CTL_N_OPTIONS
};

struct ctl_option {
    char letter;              /* 0: none */
    const char *name, *value; /* "": it takes none */
    const char *help;
};
extern const struct ctl_option ctl_options[CTL_N_OPTIONS];

/* Keys of nightjar top. */
struct ctl_top_key {
    const char *keys, *help;
};
extern const struct ctl_top_key ctl_top_keys[]; /* up to one without `keys` */

struct ctl_exit_status {
    const char *status, *meaning;
};
extern const struct ctl_exit_status ctl_exit_statuses[]; /* up to one without `status` */
