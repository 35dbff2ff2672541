/* What a command may do. Called in the child, after the uid is set, right before exec. 0 or -1. */
#ifndef WALLS_H
#define WALLS_H

int drop_capabilities(void);     /* bounding, permitted, effective, inheritable, ambient to the container's set */
int install_seccomp(int *asked); /* where io_setup waits for an answer, -1: there is no such call; NULL: nor should there be */

#endif
