/* The process beside the server that moves bytes: once the server has decided on a connection, no JavaScript touches them. */
#ifndef MOVER_H
#define MOVER_H

int mover_main(void);

#endif
