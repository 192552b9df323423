/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that wait for descriptors, on fibers and in virtual time: real pipes, in the epoll
 * instance of the shard, which the rig asks before each step. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/handlers_rig.h"

#define MANY 100u

/* What a handler waits for, by the number in its path, and how that ended. */
static struct {
    int fd;
    short events;
    uint64_t timeout;
    int rc, after;
    unsigned begun, over;
} wait_for[4];

static struct pollfd many[MANY];
static unsigned n_many;

static void await_one(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned i = (unsigned)(nj_request_path_rest(req).p[0] - '0');

    wait_for[i].begun++;
    wait_for[i].rc = nj_await_fd(wait_for[i].fd, wait_for[i].events, wait_for[i].timeout);
    wait_for[i].after = wait_for[i].rc == NJ_ERR_CANCELLED ? nj_await_fd(wait_for[i].fd, 0, 1) : 0;
    wait_for[i].over++;
}

static void await_many(struct nj_request *req, struct nj_response *resp, void *arg)
{
    wait_for[0].begun++;
    wait_for[0].rc = nj_await_fds(many, n_many, wait_for[0].timeout);
    wait_for[0].over++;
}

static int refused[2];

static void await_inline(struct nj_request *req, struct nj_response *resp, void *arg)
{
    refused[0] = nj_await_fd(wait_for[0].fd, POLLIN, 0);
    refused[1] = nj_await_fds(many, 0, 1);
}

static const struct nj_route routes[] = {
    {.path = "/one/*", .type = NJ_BLOCKING, .handle = await_one},
    {.path = "/many", .type = NJ_BLOCKING, .handle = await_many},
    {.path = "/inline", .type = NJ_NON_BLOCKING, .handle = await_inline},
    {.path = "/worker/*", .type = NJ_OS_BLOCKING, .handle = await_one},
};

static struct hr *start(void)
{
    memset(wait_for, 0, sizeof wait_for);
    memset(many, 0, sizeof many);
    return hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
}

static void finish(struct hr *h)
{
    cr_expect_eq(h->fd_waits.n, 0, "%u descriptors are still watched", h->fd_waits.n);
    hr_free(h);
}

static void put(int fd)
{
    cr_assert_eq(write(fd, "x", 1), 1);
}

static void drain(int fd)
{
    char c;
    cr_assert_eq(read(fd, &c, 1), 1);
}

static void close_both(const int *ends)
{
    close(ends[0]);
    close(ends[1]);
}

/* Opens a pipe, whose read end the first handler awaits. */
static void open_awaited(int ends[2])
{
    cr_assert_eq(pipe(ends), 0);
    wait_for[0].fd = ends[0];
    wait_for[0].events = POLLIN;
}

Test(conn_handler_tasks_fds, waits_until_it_is_ready)
{
    int ends[2];
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    open_awaited(ends);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/one/0"));
    hr_run(h, 10 * NJ_SEC);
    cr_expect(wait_for[0].begun == 1 && wait_for[0].over == 0 && a->status == 0);
    cr_expect_eq(h->fd_waits.n, 1);
    nj_shard_publish(h->r->s);
    cr_expect_eq(rig_count(h->r, NJ_C_handler_fd_waits), 1);
    cr_expect_eq(h->r->s->conns.handlers.n_awaiting[NJ_AWAIT_FD], 1);
    put(ends[1]);
    hr_settle(h);
    cr_expect(wait_for[0].rc == POLLIN && a->status == 200 && a->ended);

    /* It still is: the next one returns at once. */
    hr_get(c, "/one/0");
    hr_settle(h);
    cr_expect(wait_for[0].over == 2 && wait_for[0].rc == POLLIN);
    drain(ends[0]);
    close(ends[1]);
    hr_get(c, "/one/0");
    hr_settle(h);
    cr_expect(wait_for[0].over == 3 && wait_for[0].rc == POLLHUP, "%d", wait_for[0].rc);
    nj_shard_publish(h->r->s);
    cr_expect_eq(rig_count(h->r, NJ_C_handler_fd_waits), 1);
    cr_expect_eq(h->r->s->conns.handlers.n_awaiting[NJ_AWAIT_FD], 0);
    close(ends[0]);
    finish(h);
}

Test(conn_handler_tasks_fds, the_time_passes)
{
    int ends[2];
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    open_awaited(ends);
    wait_for[0].timeout = NJ_SEC;
    hr_get(c, "/one/0");
    hr_run(h, NJ_SEC - 5 * NJ_MS);
    cr_expect_eq(wait_for[0].over, 0);
    hr_run(h, 10 * NJ_MS);
    cr_expect(wait_for[0].over == 1 && wait_for[0].rc == NJ_ERR_TIMEOUT);
    cr_expect_eq(h->fd_waits.n, 0);
    put(ends[1]); /* it does not matter any more */
    hr_settle(h);

    /* The time is over and the descriptor is ready: that is no time-out. */
    drain(ends[0]);
    hr_get(c, "/one/0");
    hr_settle(h);
    cr_expect_eq(wait_for[0].over, 1);
    h->r->now += 2 * NJ_SEC;
    put(ends[1]);
    hr_settle(h);
    cr_expect(wait_for[0].over == 2 && wait_for[0].rc == POLLIN);
    close_both(ends);
    finish(h);
}

Test(conn_handler_tasks_fds, the_stream_ends)
{
    int ends[2];
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    open_awaited(ends);
    int32_t id = hr_get(c, "/one/0");
    hr_settle(h);
    cr_expect_eq(wait_for[0].begun, 1);
    hr_reset(c, id);
    hr_settle(h);
    cr_expect(wait_for[0].over == 1 && wait_for[0].rc == NJ_ERR_CANCELLED);
    cr_expect_eq(wait_for[0].after, NJ_ERR_CANCELLED);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);

    /* The shard ends. */
    hr_get(c, "/one/0");
    hr_settle(h);
    cr_expect_eq(wait_for[0].begun, 2);
    nj_tcp_abort_all(&h->r->s->tcp, h->r->now);
    hr_settle(h);
    cr_expect(wait_for[0].over == 2 && wait_for[0].rc == NJ_ERR_CANCELLED);
    close_both(ends);
    finish(h);
}

Test(conn_handler_tasks_fds, two_at_once)
{
    int ends[2], others[2], copy;
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    cr_assert(pipe(ends) == 0 && pipe(others) == 0 && (copy = dup(ends[0])) >= 0);
    wait_for[0].fd = wait_for[1].fd = ends[0];
    wait_for[2].fd = others[0];
    wait_for[3].fd = copy;
    for (int i = 0; i < 4; i++)
        wait_for[i].events = POLLIN;
    hr_get(c, "/one/0");
    hr_get(c, "/one/1");
    hr_get(c, "/one/2");
    hr_get(c, "/one/3");
    hr_settle(h);
    cr_expect(wait_for[1].over == 1 && wait_for[1].rc == NJ_ERR_INVALID, "it is awaited already");
    cr_expect_eq(h->fd_waits.n, 3);
    put(others[1]);
    hr_settle(h);
    cr_expect(wait_for[0].over == 0 && wait_for[2].over == 1 && wait_for[2].rc == POLLIN);
    put(ends[1]);
    hr_settle(h);
    cr_expect(wait_for[0].over == 1 && wait_for[0].rc == POLLIN);
    cr_expect(wait_for[3].over == 1 && wait_for[3].rc == POLLIN);
    close(copy);
    close_both(ends);
    close_both(others);
    finish(h);
}

Test(conn_handler_tasks_fds, what_is_no_open_descriptor)
{
    int ends[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    cr_assert_eq(pipe(ends), 0);
    close_both(ends);
    wait_for[0].fd = ends[0];
    wait_for[1].fd = -1;
    wait_for[2].fd = wait_for[3].fd = file;
    wait_for[0].events = wait_for[1].events = POLLIN;
    wait_for[2].events = POLLIN | POLLOUT;
    wait_for[3].timeout = NJ_MS; /* for no event: a file has no errors */
    for (int i = 0; i < 4; i++) {
        char path[] = {'/', 'o', 'n', 'e', '/', (char)('0' + i), 0};
        hr_get(c, path);
    }
    hr_settle(h);
    cr_expect(wait_for[0].over == 1 && wait_for[0].rc == NJ_ERR_INVALID, "closed");
    cr_expect(wait_for[1].over == 1 && wait_for[1].rc == NJ_ERR_INVALID, "-1");
    cr_expect(wait_for[2].over == 1 && wait_for[2].rc == (POLLIN | POLLOUT), "a file is ready");
    cr_expect_eq(wait_for[3].over, 0);
    hr_run(h, 5 * NJ_MS);
    cr_expect(wait_for[3].over == 1 && wait_for[3].rc == NJ_ERR_TIMEOUT);
    close(file);
    finish(h);
}

Test(conn_handler_tasks_fds, many_of_which_one_is_ready)
{
    int in[MANY], out[MANY];
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    for (unsigned i = 0; i < MANY; i++) {
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        in[i] = ends[0], out[i] = ends[1];
        many[i] = (struct pollfd){.fd = i % 7 == 3 ? -1 : in[i], .events = POLLIN, .revents = -1};
    }
    n_many = MANY;
    hr_get(c, "/many");
    hr_run(h, NJ_SEC);
    cr_expect(wait_for[0].begun == 1 && wait_for[0].over == 0);
    put(out[3]); /* ignored */
    hr_settle(h);
    cr_expect_eq(wait_for[0].over, 0);
    put(out[MANY - 1]);
    put(out[0]);
    hr_settle(h);
    cr_expect(wait_for[0].over == 1 && wait_for[0].rc == 2, "%d", wait_for[0].rc);
    for (unsigned i = 0; i < MANY; i++)
        cr_expect_eq(many[i].revents, i == 0 || i == MANY - 1 ? POLLIN : 0);
    cr_expect_eq(h->fd_waits.n, 0);

    /* One of them twice, and one that is closed. */
    drain(in[0]);
    drain(in[MANY - 1]);
    many[50].fd = in[49];
    many[49].fd = in[49];
    hr_get(c, "/many");
    hr_settle(h);
    cr_expect(wait_for[0].over == 2 && wait_for[0].rc == NJ_ERR_INVALID);
    cr_expect_eq(h->fd_waits.n, 0);
    many[50].fd = in[50];
    close(in[50]);
    hr_get(c, "/many");
    hr_settle(h);
    cr_expect(wait_for[0].over == 3 && wait_for[0].rc == 1 && many[50].revents == POLLNVAL);

    /* None: only the time. */
    n_many = 0;
    wait_for[0].timeout = 100 * NJ_MS;
    hr_get(c, "/many");
    hr_run(h, 90 * NJ_MS);
    cr_expect_eq(wait_for[0].over, 3);
    hr_run(h, 20 * NJ_MS);
    cr_expect(wait_for[0].over == 4 && wait_for[0].rc == NJ_ERR_TIMEOUT);
    for (unsigned i = 0; i < MANY; i++) {
        close(out[i]);
        if (i != 50)
            close(in[i]);
    }
    finish(h);
}

/* Edges, by an epoll instance of the program: bytes that were reported are not reported again. */
Test(conn_handler_tasks_fds, edges)
{
    int pair[2], set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cr_assert_eq(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event), 0);
    wait_for[0].fd = set;
    wait_for[0].events = POLLIN;
    for (unsigned i = 1; i <= 3; i++) {
        hr_get(c, "/one/0");
        hr_run(h, NJ_SEC);
        cr_expect(wait_for[0].begun == i && wait_for[0].over == i - 1, "no edge since the last");
        put(pair[1]);
        hr_settle(h);
        cr_expect(wait_for[0].over == i && wait_for[0].rc == POLLIN);
        cr_expect_eq(epoll_wait(set, &event, 1, 0), 1);
    }
    close(set);
    close_both(pair);
    finish(h);
}

Test(conn_handler_tasks_fds, must_not_wait)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    hr_get(c, "/inline");
    hr_settle(h);
    cr_expect(refused[0] == NJ_ERR_WOULD_BLOCK && refused[1] == NJ_ERR_WOULD_BLOCK);
    finish(h);
}

Test(conn_handler_tasks_fds, on_a_worker)
{
    int ends[2];
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    open_awaited(ends);
    wait_for[0].timeout = 1;
    hr_get(c, "/worker/0");
    hr_settle(h);
    cr_expect(wait_for[0].over == 1 && wait_for[0].rc == NJ_ERR_TIMEOUT);
    put(ends[1]);
    hr_get(c, "/worker/0");
    hr_settle(h);
    cr_expect(wait_for[0].over == 2 && wait_for[0].rc == POLLIN);
    close_both(ends);
    wait_for[0].timeout = 0;
    wait_for[0].fd = 1 << 20; /* is not open */
    hr_get(c, "/worker/0");
    hr_settle(h);
    cr_expect(wait_for[0].over == 3 && wait_for[0].rc == NJ_ERR_INVALID);
    finish(h);
}
