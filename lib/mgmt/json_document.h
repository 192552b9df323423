/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of answers.h as JSON (RFC 8259), for the management listener. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "mgmt/view.h"

/* Write the answer of a command as an object in one line: integers, and texts in ASCII with
 * escapes. `params` is what follows '?' in a URL, as it was sent: "limit=20&by=streams"; a value
 * alone is the next parameter in order: "20,by=streams". NULL or "": none. Nothing changes: there
 * is no parameter that changes limits or resets counters.
 * False, and nothing is written: there is no such command (nj__mgmt_parameters_of()), the
 * parameters are invalid, or there is no memory. An error of `out` is the caller's to see. Locks of
 * the policy and of the ports are not held while `out` is written. Any thread but an lcore, while
 * the view exists. */
bool nj__mgmt_write_json(const struct nj_mgmt_view *v, const char *name, const char *params,
                         FILE *out);

/* Writes the names of its parameters to `to`, "limit and by" or "none", cut to `size`, and returns
 * `to`. NULL: there is no such command. */
const char *nj__mgmt_parameters_of(const char *name, char *to, size_t size);

/* Write the commands as an object: `commands`, a list of `name`, `path`, `help`, and `parameters`,
 * a list of names. False: there is no memory. */
bool nj__mgmt_write_json_commands(FILE *out);

/*
 * What changes something writes an object and returns a status of HTTP: 200; 500 with `error`, if
 * the change was made, and there is no memory for the answer; or another one with the reason as
 * `error`: then nothing has changed. Any thread but an lcore.
 */

/* Change limits, as nj_server_change_limits(). Answers as `limits`. */
unsigned nj__mgmt_change_limits(const struct nj_mgmt_view *v, const char *change, FILE *out);
/* End a transfer ("0-17-203-5", as `transfers` tells) or all those of an address or a network
 * ("198.18.0.0/24"): `ended`, and `lcores_missing`, those that have not answered in time and may
 * end transfers later. */
unsigned nj__mgmt_end_transfers(const struct nj_mgmt_view *v, const char *what, FILE *out);
/* Block a network, for a time if there is one behind a comma: "198.18.0.0/24,10m". Unblock it. Both
 * answer as `blocks`. */
unsigned nj__mgmt_block_network(const struct nj_mgmt_view *v, const char *what, FILE *out);
unsigned nj__mgmt_unblock_network(const struct nj_mgmt_view *v, const char *what, FILE *out);
/* Read the configuration again: `ok`, and `errors`, a list of lines, with 422. */
unsigned nj__mgmt_reload(const struct nj_mgmt_view *v, FILE *out);
/* Open the access log again: `ok`, and `access_log`, whether there is one. */
unsigned nj__mgmt_reopen_log(const struct nj_mgmt_view *v, FILE *out);

struct nj__document;
/* Writes a document of JSON. False: it is not complete, or there is no memory for the output. */
bool nj__document_write_json(const struct nj__document *doc, FILE *out);
