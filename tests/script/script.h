/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scripts in packetdrill's language, as our own runner supports it (docs/rfc/packetdrill.md): the
 * parsed script, and the state of a run.
 */
#pragma once

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/types.h"
#include "script/packetdrill_abi.h"

/* Bounds of a script; beyond them it is rejected with the line number. */
#define SCRIPT_BYTES_MAX     (256u * 1024u)
#define SCRIPT_EVENTS_MAX    2048u
#define SCRIPT_ITEMS_MAX     16u /* arguments of a call, members of a list */
#define SCRIPT_DEPTH_MAX     8u  /* of lists in lists */
#define SCRIPT_OPTS_MAX      40u /* options of a segment: forty times one byte */
#define SCRIPT_WORD_MAX      64u
#define SCRIPT_CALL_BYTES    (1024u * 1024u) /* that one call reads or writes */
#define SCRIPT_FDS_MAX       64
#define SCRIPT_VARIABLES_MAX 32u
#define SCRIPT_PEERS_MAX     16
#define SCRIPT_PACKET_MAX    65536u
#define SCRIPT_SEGMENT_MAX   65280u /* bytes of data: the limit of so_world.h without headers */

/* --- segments as text ------------------------------------------------------------------------- */

enum opt_kind {
    OPT_EOL = 0,
    OPT_NOP = 1,
    OPT_MSS = 2,
    OPT_WSCALE = 3,
    OPT_SACKOK = 4,
    OPT_SACK = 5,
    OPT_TS = 8
};

struct opt {
    uint8_t kind;
    uint8_t n_bytes; /* of the length field; may be false for an unnamed kind */
    uint32_t a, b;   /* mss, shift, or val and ecr */
    uint32_t sack[4][2];
    uint8_t n_sack;
};

struct pkt {
    bool inbound, is_icmp;
    int ecn; /* -1: not given */
    bool bad_sum;
    uint8_t flags;
    uint32_t seq, n_bytes; /* of an ICMP error: quoted values */
    uint32_t ack, win, urg;
    bool has_win, any_opts;
    uint32_t n_opts;
    struct opt opt[SCRIPT_OPTS_MAX];
    uint8_t icmp_type, icmp_code;
    uint16_t icmp_mtu;
    uint16_t sport, dport; /* of the sent segment */
    uint32_t payload_off;
};

/* --- scripts ---------------------------------------------------------------------------------- */

enum value_kind { V_ELLIPSIS, V_INT, V_STRING, V_LIST, V_STRUCT };

struct value {
    enum value_kind kind;
    int64_t num;
    char name[SCRIPT_WORD_MAX]; /* of a member: its name, or "" */
    char text[SCRIPT_WORD_MAX];
    uint32_t n;
    struct value *item;
};

enum time_kind { TIME_ABSOLUTE, TIME_RELATIVE, TIME_ANY };
enum event_kind { EVENT_PACKET, EVENT_CALL, EVENT_CODE, EVENT_NOTHING };

struct event {
    int line;
    enum time_kind time;
    bool is_range, is_blocking;
    int64_t at_us, end_us; /* end: of a range, or when a blocking call returns */
    enum event_kind kind;
    struct pkt pkt;
    char call[SCRIPT_WORD_MAX];
    struct value args; /* a list */
    bool any_result;
    int64_t result;
    int error;        /* errno with a result of -1; 0: not given */
    const char *text; /* of code: from here to the closing mark */
};

struct script {
    const char *path;
    char *text;
    const char *p; /* position of the parser */
    int line;
    uint32_t n_events;
    struct event *event;
    /* Options at its head. */
    int64_t tolerance_us;
    char flags[256];
    uint32_t remote_isn;
    bool strict_options, strict_segments, open_end;
    bool foreign;       /* written for another stack: see main.c */
    uint32_t mtu;       /* 0: not given */
    bool v4_only, v6;   /* v6: run over IPv6 */
    char message[2048]; /* reason of the failure */
    jmp_buf failed;
    void *allocated[SCRIPT_EVENTS_MAX * 4];
    uint32_t n_allocated;
};

/* Fail the script. Only from the thread that runs it. */
_Noreturn void script_fail(struct script *s, int line, const char *format, ...) NJ_PRINTF(3, 4);
/* Zeroed memory until the script ends. */
void *script_alloc(struct script *s, size_t n);

/* lex.c: words and values at the cursor. */
void lex_space(struct script *s);
bool lex_is(struct script *s, const char *token); /* consume it if it comes next */
void lex_want(struct script *s, const char *token);
bool lex_number(struct script *s, int64_t *n); /* decimal or 0x; no sign */
int64_t lex_want_number(struct script *s, const char *what);
bool lex_word(struct script *s, char word[SCRIPT_WORD_MAX]);
void lex_value(struct script *s, struct value *v, unsigned depth);

/* names.c */
bool name_value(const char *name, int64_t *value);
const char *name_of_errno(int e); /* "EAGAIN" */
int name_errno(const char *name); /* 0: unknown name */

/* parse.c */
void script_parse(struct script *s);

/* segment.c */
void segment_parse(struct script *s, struct pkt *p);
void segment_print(const struct pkt *p, char *to, size_t n);

/* wire.c */
struct wire_ends {
    struct nj_addr src, dst; /* IPv4-mapped, or IPv6: determines the family of the packet */
    uint16_t sport, dport;
};
/* Bytes of an IP packet; `p` holds live numbers. `payload` may be NULL. */
size_t wire_build(uint8_t *to, const struct pkt *p, const struct wire_ends *ends,
                  const uint8_t *payload);
/* NULL, or an error. Verifies every checksum. */
const char *wire_parse(const uint8_t *bytes, size_t n, struct pkt *p);

/* --- runs ------------------------------------------------------------------------------------- */

/* The other end of a connection, and the mapping of its script numbers to live numbers. */
struct peer {
    uint16_t local_port, remote_port;        /* local_port 0: unknown before its SYN */
    bool local_known, remote_known, new_isn; /* new_isn: our next SYN may start at any number */
    uint32_t local_off, remote_off;          /* live = script + off */
    uint32_t last_syn;                       /* script's number of the peer's last SYN */
    bool ts_known;
    uint32_t ts_script, ts_live; /* of the last expected segment */
    uint32_t n_written, n_read;  /* position of the next byte in the stream, from 1 */
};

struct fd_entry {
    int script_fd, live_fd;
    struct peer *peer;
};

/* A running or completed call. */
struct job {
    const struct event *event;
    struct run *run;
    int64_t result;
    int error;
    int64_t end_us;
    char message[512]; /* error in its output arguments */
    int new_live_fd;
    struct peer *new_peer;
};

/* A name of the script's code. */
struct variable {
    char name[SCRIPT_WORD_MAX];
    long double value;
};

struct run {
    struct script *s;
    struct packetdrill_interface call;
    int64_t start_us, now_us; /* live time of script time 0, and script time of the last event */
    struct peer peer[SCRIPT_PEERS_MAX];
    struct peer *cur;
    struct fd_entry fd[SCRIPT_FDS_MAX];
    uint32_t n_fds;
    int last_conn; /* script descriptor of the last connection, for code; -1 */
    struct variable variable[SCRIPT_VARIABLES_MAX];
    uint32_t n_variables;
    struct blocked *blocked;
    _Atomic bool ends; /* the stack and its clock are ending */
};

struct nj_addr run_addr(const struct script *s, bool peer);
uint8_t run_byte(uint32_t place, bool inbound);
int64_t run_clock(struct run *r); /* script time */

/* run_packet.c */
void run_inbound(struct run *r, const struct event *e);
void run_outbound(struct run *r, const struct event *e);
void run_nothing_left(struct run *r);
void run_check_time(struct run *r, const struct event *e, int64_t at_us, const char *what);

/* run_call.c */
void run_call(struct run *r, const struct event *e);
void job_run(struct job *j);                       /* any thread */
void job_check(struct run *r, struct job *job);    /* the script's thread */
int run_live_fd(struct run *r, int64_t script_fd); /* -1 */

/* run_blocked.c: calls with a time range, in a thread of their own. */
void run_blocking(struct run *r, const struct event *e);
/* Has the blocked call returned? If so, check it. */
void run_settle(struct run *r);
/* At the end of the script: it must have returned. */
void run_all_returned(struct run *r);
/* The table's free(), which makes blocked calls return; then joins the thread. */
void run_end(struct run *r);

/* code.c */
void run_code(struct run *r, const struct event *e);
