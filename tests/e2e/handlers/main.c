/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar-test-handlers: handlers that get stuck or crash in every way, for test_handlers.py,
 * test_crash.py, test_privileges.py and test_tls.py. */
#include "options.h"
#include "waits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PART_BYTES 16384
#define PERIOD     251 /* a prime: all parts of PART_BYTES differ */

static uint8_t pattern[PART_BYTES + PERIOD]; /* byte i is i mod 251 */

/* The decimal number behind the '=' in the query; 0 without. */
static unsigned long number(const struct nj_request *req)
{
    struct nj_view query = nj_request_query(req);
    const char *equals = memchr(query.p, '=', query.n_bytes);
    unsigned long n = 0;

    if (!equals)
        return 0;
    for (const char *p = equals + 1; p < query.p + query.n_bytes && *p >= '0' && *p <= '9'; p++)
        n = n * 10 + (unsigned long)(*p - '0');
    return n;
}

static void say(struct nj_response *resp, const char *line)
{
    nj_response_header(resp, "content-type", "text/plain");
    nj_response_write(resp, line, strlen(line));
}

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)arg;
    say(resp, "hello\n");
}

/* n bytes of the pattern: parks where the peer's window ends. */
static void count(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned long n = number(req);

    (void)arg;
    for (unsigned long done = 0, len; done < n; done += len) {
        len = n - done < PART_BYTES ? n - done : PART_BYTES;
        if (nj_response_write(resp, pattern + done % PERIOD, len) != 0)
            return;
    }
}

/* RFC 1950 9, so that the client can check the read bytes without a copy of them. */
static uint32_t adler32(uint32_t sum, const uint8_t *p, size_t n)
{
    uint32_t a = sum & 0xffff, b = sum >> 16;

    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Its body, to the end: "BYTES ADLER32". */
static void digest(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t part[PART_BYTES];
    char line[64];
    uint64_t n_bytes = 0;
    uint32_t sum = 1;
    int64_t n;

    (void)arg;
    while ((n = nj_request_read(req, part, sizeof part)) > 0) {
        sum = adler32(sum, part, (size_t)n);
        n_bytes += (uint64_t)n;
    }
    if (n < 0)
        return; /* too large: the server sends 413; closed: no response is possible */
    snprintf(line, sizeof line, "%llu %u\n", (unsigned long long)n_bytes, sum);
    say(resp, line);
}

static void forever(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_event never = {0};

    (void)req;
    (void)arg;
    nj_await(&never, 0);
    say(resp, "the endless wait has ended\n");
}

static void doze(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)arg;
    say(resp, nj_sleep(number(req) * 1000000) == 0 ? "slept\n" : "did not sleep\n");
}

static void doze_in_kernel(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned long ms = number(req);
    struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    (void)arg;
    while (nanosleep(&left, &left) != 0)
        ;
    say(resp, "slept\n");
}

/* Opens a FIFO: the call returns when another process opens its other end. */
static void gate(struct nj_request *req, struct nj_response *resp, void *arg)
{
    const char *path = getenv("NJ_TEST_GATE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    (void)req;
    (void)arg;
    if (fd < 0) {
        nj_response_status(resp, 500);
        return;
    }
    close(fd);
    say(resp, "through\n");
}

/* Reads a file that is for this process's user alone. */
static void private(struct nj_request *req, struct nj_response *resp, void *arg)
{
    const char *path = getenv("NJ_TEST_PRIVATE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[64];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);

    (void)req;
    (void)arg;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        nj_response_status(resp, 500);
    else
        nj_response_write(resp, text, (size_t)n);
}

/* Connects to a port of this host, and starts a program that writes to the connection. */
static void run_program(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)number(req)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;

    (void)arg;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        nj_response_status(resp, 500);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(fd, STDOUT_FILENO);
        execl("/bin/echo", "echo", "from a program", (char *)NULL);
        _exit(126);
    }
    close(fd);
    if (child > 0)
        waitpid(child, &status, 0);
    say(resp, status == 0 ? "it ran\n" : "it did not run\n");
}

/* Makes a system call that a server does not need. Responds with the name of its error. Without a
 * filter the error is another one, or there is none. */
static void privileged(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned long which = number(req);
    long rc = which == 0   ? ptrace(PTRACE_TRACEME, 0, NULL, NULL)
              : which == 1 ? unshare(CLONE_NEWUSER)
              : which == 2 ? setns(-1, 0)
              : which == 3 ? syscall(SYS_keyctl, 0, 0, 0)
              : which == 4 ? syscall(SYS_userfaultfd, ~0u)
                           : syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

    (void)arg;
    if (which > 4 && rc == 0)
        _exit(0); /* the child */
    say(resp, rc < 0 ? strerrorname_np(errno) : "no error");
}

static void where(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)arg;
    say(resp, nj_must_not_block() ? "inline\n" : "on a stack\n");
}

/* Holds the core for n microseconds of its own CPU time. */
static void spin(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint64_t end = 0, us = number(req);
    struct timespec t;

    (void)arg;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        uint64_t at = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
        end = end ? end : at + us;
        us = end - at <= us ? end - at : 0;
    } while (us > 0);
    say(resp, "spun\n");
}

static void trailers(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)arg;
    nj_response_write(resp, "body\n", 5);
    nj_response_trailer(resp, "x-sum", "5");
    nj_response_trailer(resp, "x-last", "yes");
}

/* The subject of the client's certificate, in brackets. */
static void subject(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view of = nj_request_client_subject(req);

    (void)arg;
    nj_response_write(resp, "[", 1);
    nj_response_write(resp, of.p, of.n_bytes);
    nj_response_write(resp, "]", 1);
}

static uint64_t descend(uint64_t n)
{
    volatile uint64_t frame[64] = {n};

    return n == 0 ? 0 : descend(n + 1) + frame[0];
}

/* 1: the end of the stack; 2: abort(); 3: a jump to where no code is; else a write behind NULL. */
static void crash(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned long how = number(req);
    volatile uintptr_t low = 8;

    (void)arg;
    switch (how) {
    case 1:
        nj_response_status(resp, descend(how) == 1 ? 200 : 500);
        break;
    case 2:
        abort();
    case 3:
        ((void (*)(void))low)();
        nj_response_status(resp, 500); /* so that the call is no jump */
        break;
    default:
        *(volatile int *)low = 1;
    }
}

/* Pinned routes do not count as slow when the kernel preempts an lcore in the middle of them, as on
 * a busy machine. */
#define STAYS .pin_to_lcore = true

/* clang-format off */
static const struct nj_route routes[] = {
    {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello, STAYS},
    {.method = "GET", .path = "/hello-on-stack", .type = NJ_BLOCKING, .handle = hello, STAYS},
    {.method = "GET", .path = "/count", .type = NJ_BLOCKING, .handle = count, STAYS},
    {.method = "POST", .path = "/digest", .type = NJ_BLOCKING, .handle = digest, STAYS},
    {.method = "POST", .path = "/small", .type = NJ_BLOCKING, .handle = digest, STAYS,
     .body_max_bytes = 1000},
    {.method = "POST", .path = "/os-digest", .type = NJ_OS_BLOCKING, .handle = digest},
    {.method = "GET", .path = "/forever", .type = NJ_BLOCKING, .handle = forever, STAYS},
    {.method = "GET", .path = "/doze", .type = NJ_BLOCKING, .handle = doze, STAYS},
    {.method = "GET", .path = "/wrong", .type = NJ_NON_BLOCKING, .handle = doze, STAYS},
    {.method = "GET", .path = "/os-doze", .type = NJ_OS_BLOCKING, .handle = doze_in_kernel},
    {.method = "GET", .path = "/gate", .type = NJ_OS_BLOCKING, .handle = gate},
    {.method = "GET", .path = "/private", .type = NJ_OS_BLOCKING, .handle = private},
    {.method = "GET", .path = "/run-program", .type = NJ_OS_BLOCKING, .handle = run_program},
    {.method = "GET", .path = "/privileged", .type = NJ_OS_BLOCKING, .handle = privileged},
    {.method = "GET", .path = "/privileged-on-lcore", .type = NJ_BLOCKING, .handle = privileged,
     STAYS},
    {.method = "GET", .path = "/where", .type = NJ_EITHER, .handle = where, STAYS},
    {.method = "GET", .path = "/untyped", .handle = where, STAYS},
    {.method = "GET", .path = "/spin", .type = NJ_BLOCKING, .handle = spin},
    {.method = "GET", .path = "/crash", .type = NJ_NON_BLOCKING, .handle = crash, STAYS},
    {.method = "GET", .path = "/crash-on-stack", .type = NJ_BLOCKING, .handle = crash, STAYS},
    {.method = "GET", .path = "/crash-on-worker", .type = NJ_OS_BLOCKING, .handle = crash},
    {.method = "GET", .path = "/subject", .type = NJ_BLOCKING, .handle = subject, STAYS},
    {.method = "GET", .path = "/os-subject", .type = NJ_OS_BLOCKING, .handle = subject},
    {.method = "GET", .path = "/trailers", .type = NJ_BLOCKING, .handle = trailers, STAYS},
    {.method = "GET", .path = "/await-event", .type = NJ_BLOCKING, .handle = await_event, STAYS},
    {.method = "GET", .path = "/os-await-event", .type = NJ_OS_BLOCKING, .handle = await_event},
    {.method = "GET", .path = "/await-fd", .type = NJ_BLOCKING, .handle = await_fd, STAYS},
    {.method = "GET", .path = "/os-await-fd", .type = NJ_OS_BLOCKING, .handle = await_fd},
    {.method = "GET", .path = "/await-nothing", .type = NJ_BLOCKING, .handle = await_nothing,
     STAYS},
    {.method = "GET", .path = "/os-await-nothing", .type = NJ_OS_BLOCKING, .handle = await_nothing},
    {.method = "GET", .path = "/call", .type = NJ_BLOCKING, .handle = call_on_worker, STAYS},
};
/* clang-format on */

static const struct nj_app app = {.name = "nightjar-test-handlers", .intro = "", .outro = ""};

/* Of an embedding program that handles its crashes itself. */
static void leave_77(int signal_number)
{
    (void)signal_number;
    _exit(77);
}

/* Instead of the C library's, also for libnightjar. With NJ_TEST_RANDOM all its bytes are known to
 * test_crash.py, which looks for keys in memory. This program has them nowhere. */
__attribute__((visibility("default"))) ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    uint8_t *to = out;

    if (!getenv("NJ_TEST_RANDOM"))
        return syscall(SYS_getrandom, out, n, flags);
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(i % 16 * 37 + 91 + i / 16 * 5);
    return (ssize_t)n;
}

int main(int argc, char **argv)
{
    struct nj_server_config config;

    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i % PERIOD);
    waits_start();
    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    if (getenv("NJ_TEST_OWN_HANDLER"))
        signal(SIGSEGV, leave_77);
    return nj_app_run(argc, argv, &app, &config);
}
