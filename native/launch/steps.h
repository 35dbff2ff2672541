/* What the steps of a launch share. One `struct launch` is one request being carried out. */
#ifndef STEPS_H
#define STEPS_H

#include "../init/plan.h"
#include "../shared/frames.h"

#include <linux/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define TREES_MOST 64
#define MOUNTS_MOST 1024
#define LAYERS_MOST 64
#define CGROUPS_MOST 16
#define IDS_MOST 128 /* of each kind; the kernel takes a page of text at most */

/* Any folder every system has. Mounts are stacked on it in a private namespace; the top of the stack is the new root. */
#define STACK "/tmp"

/* Ids inside that are not in the usual range, with those they have outside. */
struct id_pairs {
  struct { uint32_t inside, outside; } list[IDS_MOST];
  size_t count;
};

struct tree {
  const char *name, *path;
  int fd;
};

struct mount_entry {
  char *parts[LAYERS_MOST + 4]; /* kind, target, ... */
  size_t count;
  int source;                   /* bind: the source, opened before anything covers it; -1 otherwise */
};

struct launch {
  bool root_mode, keep_privileges, tmpfs_root;
  uid_t uid_base, uid_count, map_uid, map_gid;
  struct id_pairs more_uids, more_gids;
  const char *hostname, *socket, *logs, *run, *memory_cgroup;
  const char *init_cgroups[CGROUPS_MOST], *work_cgroups[CGROUPS_MOST], *new_cgroups[CGROUPS_MOST];
  size_t init_cgroup_count, work_cgroup_count, new_cgroup_count;
  struct { const char *file, *value; bool optional; } group_values[CGROUPS_MOST];
  size_t group_value_count;
  struct { const char *name, *path; } views[CGROUPS_MOST];
  size_t view_count;
  struct shown_limits limits;
  uint32_t range;
  struct tree trees[TREES_MOST];
  size_t tree_count;
  struct mount_entry mounts[MOUNTS_MOST];
  size_t mount_count;
  const char *read_only[MOUNTS_MOST];
  size_t read_only_count;
  struct init_plan plan;
  int work_fds[CGROUPS_MOST], init_fds[CGROUPS_MOST];
  int channel;                  /* between launcher and process 1 until it is ready */
  int null;                     /* /dev/null */
  int ahead;                    /* where mounts wait for their root */
  bool socket_made;
  int socket_folder;
  /* The failure, as the reply tells it. */
  int error;
  char step[160];
  const char *message;
};

/* What process 1 tells the launcher once: error 0 means ready. Both are forks of one program, so a message can travel as
   a pointer to its text. */
struct report {
  int error;
  char step[160];
  const char *message;
};

/* Records where it failed, with errno; always -1, so that callers can return it. */
int failed(struct launch *launch, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* request.c */
int parse_launch(struct launch *launch, const struct fields *request, char *copy);
int parse_disk(struct launch *launch, const struct fields *disk, char *copy); /* `copy` has room for the payload, and stays */

/* handover.c: what the launcher gives process 1 on their channel, in this order */
int tell_mapped(struct launch *launch); /* the ids of its user namespace are there */
int await_mapped(struct launch *launch);
int give_disk(struct launch *launch, const struct fields *disk); /* what the request says of it, and as root all its mounts */
int take_disk(struct launch *launch, int *mounts);               /* a descriptor of those mounts; -1 in user mode */

/* outside.c: what the launcher does in the host's namespaces */
int make_socket(struct launch *launch);
void remove_socket(struct launch *launch);
int open_folders(struct launch *launch);
int become_base(struct launch *launch);
int write_maps(struct launch *launch, pid_t child);
int64_t start_time(pid_t pid);

/* cgroups.c */
int make_cgroups(struct launch *launch); /* those the request calls new, with their limits */
int open_cgroups(struct launch *launch);
int leave_cgroups(struct launch *launch); /* into a cgroup namespace: by the launcher as root, by process 1 otherwise */

/* mounts.c */
int open_sources(struct launch *launch);
int map_trees(struct launch *launch, pid_t child);
int make_mounts(struct launch *launch);

/* target.c: finds and makes places inside the new root, never through a link */
int open_target(int root, const char *target, bool folder, mode_t mode);
int make_link(int root, const char *target, const char *content);

/* interior.c: what every sandbox has, made by process 1 in its own mount namespace */
int make_interior(struct launch *launch, const char *where);
int make_interior_ahead(struct launch *launch); /* before there is a root */
int place_interior(struct launch *launch);      /* in the root, which is the working directory */
int enter_root(struct launch *launch);
int close_system(struct launch *launch); /* what the request names can be read only, from here on */
int attach(int mount, int root, const char *target);
int show(int from, const char *source, int to, const char *target, unsigned attributes);

/* limits.c: where programs inside find the limits */
int make_limits(struct launch *launch, int sys);            /* the files, while /sys can be written to */
int show_memory(struct launch *launch, int root, int proc); /* over /proc/meminfo */

/* inside.c: the life of process 1 until its event loop */
void become_init(struct launch *launch) __attribute__((noreturn));

/* The mount calls libc got late; by number they need no particular libc. */
static inline int call_mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data) {
  return (int)syscall(SYS_mount, source, target, type, flags, data);
}
static inline int call_open_tree(int at, const char *path, unsigned flags) { return (int)syscall(SYS_open_tree, at, path, flags); }
static inline int call_move_mount(int from, int to, const char *to_path, unsigned flags) {
  return (int)syscall(SYS_move_mount, from, "", to, to_path, flags | MOVE_MOUNT_F_EMPTY_PATH);
}
static inline int call_mount_setattr(int fd, unsigned flags, struct mount_attr *attr) {
  return (int)syscall(SYS_mount_setattr, fd, "", flags, attr, sizeof *attr);
}

/* A new file system as a mount that is not attached yet. `options` are name, value pairs ended by NULL. Descriptor or -1. */
int new_filesystem(const char *type, const char *const *options, unsigned attributes);

#endif
