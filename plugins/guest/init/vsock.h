// The way to a host whose VMM has no virtio-serial: the host calls this guest's agent over vsock, and this guest calls the host to hand over output and report.
#ifndef VSOCK_H
#define VSOCK_H

// The agent's socket, which listens; -1 when there is no vsock device.
int vsock_listen(void);
// Connected and non-blocking, or -1 when nobody takes it on the host within a moment. What was sent is taken once the host has said so: see acknowledged.h.
int vsock_open_output(void);
int vsock_open_report(void);

#endif
