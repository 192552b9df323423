/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar ctl: asks a running server over the Unix socket of its management listener, and changes
 * its limits. It is a program of its own, nightjar-ctl, which `nightjar ctl` becomes: the server
 * does not load libcurl and what libcurl needs. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "ctl/command_table.h"

/* Exit statuses. */
enum ctl_status {
    CTL_OK = 0,
    CTL_REFUSED = 1,     /* the server says no, is not ready, or its file has errors */
    CTL_USAGE = 2,       /* invalid arguments */
    CTL_UNREACHABLE = 3, /* no server was found, or none answered as one */
};

/* --- find_socket.c -------------------------------------------------------------------------- */

#define CTL_SOCKET_FOLDER "/run/nightjar"
#define CTL_SOCKET_NAME   "nightjar.sock" /* of the server that is meant without --socket */
#define CTL_PATH_BYTES    108             /* what connect(2) accepts */

/* The socket of the server. `given`: its path, or a folder that has it; NULL: CTL_SOCKET_FOLDER.
 * Of a folder it is CTL_SOCKET_NAME, or else the only socket there whose name ends with .sock.
 * False, with the reason in `why`: there is none, there are several, or permission is denied. */
bool ctl_find_socket(const char *given, char path[CTL_PATH_BYTES], char *why, size_t why_bytes);
/* The same for the server of the process `pid` alone. */
bool ctl_find_socket_of(pid_t pid, const char *given, char path[CTL_PATH_BYTES], char *why,
                        size_t why_bytes);

/* --- http_client.c -------------------------------------------------------------------------- */

#define CTL_ANSWER_BYTES_MAX (64u << 20)

struct ctl_client;

struct ctl_answer {
    long status; /* of HTTP */
    char *body;  /* with a zero after it */
    size_t n_bytes;
};

/* `path` outlives the client. NULL: there is no memory. */
struct ctl_client *ctl_client_new(const char *path, double timeout_s);
void ctl_client_free(struct ctl_client *c);
/* While a request is under way, call `ready` when the descriptor can be read, or when a signal has
 * come. If it returns false, the request ends without an answer. */
void ctl_client_watch(struct ctl_client *c, int fd, bool (*ready)(void *ctx), void *ctx);
/* Pass the body of an answer 200 to `take` while it comes, without a limit of time. If `take`
 * returns false, the request ends. */
void ctl_client_stream_to(struct ctl_client *c,
                          bool (*take)(void *ctx, const char *bytes, size_t n), void *ctx);
/* GET `target`, or POST with that body. Ends the connection only with the client. False: there is
 * no answer of HTTP in time, and the reason is in `why`. In any case call ctl_answer_free(). */
bool ctl_request(struct ctl_client *c, const char *target, const char *post_body,
                 struct ctl_answer *answer, char *why, size_t why_bytes);
void ctl_answer_free(struct ctl_answer *answer);

/* --- tables.c ------------------------------------------------------------------------------- */

/* How a number is shown. */
enum ctl_unit { CTL_PLAIN, CTL_BYTES, CTL_BYTES_PER_S, CTL_MS };

struct ctl_column {
    const char *key, *title;
    enum ctl_unit unit;
};

/* Print a list of objects, a row each, with these columns: numbers are aligned to the right, and
 * what a row lacks is "-". `columns` NULL: all keys of values that are no lists and no objects. An
 * empty list prints nothing. */
void ctl_print_table(FILE *out, json_t *list, const struct ctl_column *columns, size_t n);
/* Print any answer: a line for each value, those of objects further to the right; several objects
 * of scalars, and lists of several objects, as tables. */
void ctl_print_object(FILE *out, json_t *object);
/* Print a text of the server: what ctl_is_shown() refuses becomes '?', but a newline. */
void ctl_print_text(FILE *out, const char *text);

/* --- commands.c ----------------------------------------------------------------------------- */

/* What a command has. */
struct ctl {
    struct ctl_client *client;
    bool json;
    const char *socket;               /* its path */
    const char *for_time;             /* of --for; NULL: not given */
    const char *given[CTL_N_OPTIONS]; /* values of those of captures and traces; NULL: not given */
    int argc;                         /* its arguments */
    char **argv;
};

/* Print why the server refuses: "error" or "errors" of JSON, else the answer's text. */
void ctl_print_reasons(const struct ctl_answer *a);
/* Run a command, whose number of arguments is valid, and print its answer on standard output or the
 * reason for a failure on standard error. */
enum ctl_status ctl_run(struct ctl *c, enum ctl_command_id command);

/* --- taps.c --------------------------------------------------------------------------------- */

enum ctl_status ctl_capture(struct ctl *c);
enum ctl_status ctl_trace(struct ctl *c);

/* --- diff.c --------------------------------------------------------------------------------- */

enum ctl_status ctl_run_diff(struct ctl *c);
