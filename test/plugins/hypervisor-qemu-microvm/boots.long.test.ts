// Of the contract that the driver for the board microvm keeps, what a board decides: that guests boot, are heard, end, and go on from an image of their memory.
process.env['BERTH_CONFORMANCE_CASES'] ??= 'launching,stream,ending,imaging,changing,forking,leaving'
await import('./conformance.js')
