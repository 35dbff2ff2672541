/* What the files of the resident helper share: requests, answers, walking folders. */
#ifndef HOST_H
#define HOST_H

#include "cell.h"

#include <linux/openat2.h>
#include <sys/stat.h>

/* What a request is answered with: the fields of a reply, or an error. */
struct answer {
  struct output fields;
  bool failed;
  const char *code;
  int error;
  const char *step;
  char message[512];
};

void refuse(struct answer *answer, const char *code, int error, const char *step, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void refuse_errno(struct answer *answer, const char *step, const char *subject); /* from errno */
/* The value of a field that must be there and not empty; otherwise NULL, and the answer is a refusal. */
const char *required(const struct fields *request, const char *key, struct answer *answer);
/* A list must leave room in its frame; false when it is full. */
bool put_row(struct output *output, const char *key, const char *value, size_t most_bytes);

/* Something the loop waits for. `ready` may free the object that holds it. */
struct source {
  int fd;
  void (*ready)(struct source *source, uint32_t events);
};
int loop_add(struct source *source, uint32_t events);
void loop_change(struct source *source, uint32_t events);
void loop_remove(struct source *source); /* also closes the descriptor */
void channel_reply(const char *id, struct answer *answer);
void channel_frame(uint8_t kind, const void *payload, size_t length);
void channel_event(struct output *event);

typedef void (*handler)(const struct fields *request, struct answer *answer);
enum { INLINE = 0, FORKED = 1, DIES_WITH_HOST = 2 }; /* how a request is carried out */

/* host_jobs.c: requests that run in a child each */
void job_start(const struct fields *request, const char *id, handler handle, int how);
void jobs_reap(void);
bool launch_is_running(pid_t child);

/* host_processes.c: process 1 of every sandbox */
void process_watch_launched(const struct fields *reply, const char *sandbox, pid_t launcher);
void process_reaped(pid_t pid, int status);
void process_adopt(const struct fields *request, struct answer *answer);
void process_kill(const struct fields *request, struct answer *answer);

/* host_cpus.c */
void change_cpus(const struct fields *request, struct answer *answer);

/* btrfs.c, btrfs_quota.c */
void btrfs_create(const struct fields *request, struct answer *answer);
void btrfs_snapshot(const struct fields *request, struct answer *answer);
void btrfs_readonly(const struct fields *request, struct answer *answer);
void btrfs_identity(const struct fields *request, struct answer *answer);
void btrfs_delete(const struct fields *request, struct answer *answer);
void btrfs_sync(const struct fields *request, struct answer *answer);
void btrfs_freespace(const struct fields *request, struct answer *answer);
void btrfs_quota(const struct fields *request, struct answer *answer);
void btrfs_qgroup(const struct fields *request, struct answer *answer);
void btrfs_usage(const struct fields *request, struct answer *answer);
bool parse_qgroup(const char *text, uint64_t *id);
bool open_parent(const char *path, int *parent, const char **name, struct answer *answer);
int destroy_subvolume(int parent, const char *name); /* nested ones and read-only ones too; 0 or -1 */

/* tree.c */
int open_beneath(int root, const char *path, int flags); /* never through a link, into another mount, or out of root */
/* Removes what `name` is, whatever it is. Never follows a link; EXDEV at another mount. 0 or -1. */
int remove_at(int parent, const char *name);
void tree_remove(const struct fields *request, struct answer *answer);
void tree_measure(const struct fields *request, struct answer *answer);

/* The names in a folder, sorted by bytes; freed by names_free. */
struct names {
  char *data;
  size_t length, capacity;
  const char **sorted;
  size_t count, room;
};
int names_read(int folder, struct names *names); /* reuses what an earlier call left; 0 or -1 */
void names_free(struct names *names);

/* diff.c, extract.c */
void diff_request(const struct fields *request, struct answer *answer);
void extract_request(const struct fields *request, struct answer *answer);

/* run.c */
void run_request(const struct fields *request, struct answer *answer);

/* sync.c, mask.c, watch.c */
void sync_request(const struct fields *request, struct answer *answer);
void compare_request(const struct fields *request, struct answer *answer);
void mask_request(const struct fields *request, struct answer *answer);
void watch_request(const struct fields *request, struct answer *answer);
void drain_request(const struct fields *request, struct answer *answer);
void unwatch_request(const struct fields *request, struct answer *answer);

/* lookout.c */
void lookout_begin(const struct fields *request, struct answer *answer);
void lookout_ask(const struct fields *request, struct answer *answer);

#endif
