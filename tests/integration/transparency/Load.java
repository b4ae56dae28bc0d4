// A Java program under load: threads, locks, sockets, children, garbage. Prints one line a job; the lines are the same each time.
import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;
import java.util.zip.CRC32;

public class Load {
    interface Job { String run() throws Exception; }

    static String hex(CRC32 crc) { return String.format("%08x", crc.getValue()); }

    static String handover() throws Exception {
        var queue = new SynchronousQueue<Integer>();
        var sum = new AtomicLong();
        var taker = new Thread(() -> {
            try {
                for (int i = 0; i < 20000; i++) sum.addAndGet(queue.take());
            } catch (InterruptedException e) {
                sum.set(-1);
            }
        });
        taker.start();
        for (int i = 0; i < 20000; i++) queue.put(i);
        taker.join();
        return sum.toString();
    }

    static String locks() throws Exception {
        var lock = new ReentrantLock();
        var changed = lock.newCondition();
        var turn = new int[1];
        var threads = new ArrayList<Thread>();
        for (int t = 0; t < 4; t++) {
            final int mine = t;
            var thread = new Thread(() -> {
                for (int i = 0; i < 500; i++) {
                    lock.lock();
                    try {
                        while (turn[0] % 4 != mine) changed.awaitUninterruptibly();
                        turn[0]++;
                        changed.signalAll();
                    } finally {
                        lock.unlock();
                    }
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (var thread : threads) thread.join();
        return Integer.toString(turn[0]);
    }

    static String sockets() throws Exception {
        var crc = new CRC32();
        try (var server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            var answering = new Thread(() -> {
                try (var peer = server.accept()) {
                    peer.getInputStream().transferTo(peer.getOutputStream());
                } catch (IOException e) {
                    e.printStackTrace(System.out);
                }
            });
            answering.start();
            try (var socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
                var in = new DataInputStream(socket.getInputStream());
                var out = new DataOutputStream(socket.getOutputStream());
                for (int i = 0; i < 3000; i++) {
                    out.writeInt(i * i);
                    int answer = in.readInt();
                    crc.update(answer & 0xff);
                }
            }
            answering.join();
        }
        return hex(crc);
    }

    static String selector() throws Exception {
        var crc = new CRC32();
        var pipe = Pipe.open();
        try (var selector = Selector.open()) {
            pipe.source().configureBlocking(false);
            pipe.source().register(selector, SelectionKey.OP_READ);
            var writer = new Thread(() -> {
                try {
                    for (int i = 0; i < 1000; i++) pipe.sink().write(ByteBuffer.wrap(("word " + i + "\n").getBytes()));
                    pipe.sink().close();
                } catch (IOException e) {
                    e.printStackTrace(System.out);
                }
            });
            writer.start();
            var buffer = ByteBuffer.allocate(512);
            for (boolean open = true; open;) {
                selector.select();
                selector.selectedKeys().clear();
                for (;;) {
                    buffer.clear();
                    int got = pipe.source().read(buffer);
                    if (got < 0) open = false;
                    if (got <= 0) break;
                    crc.update(buffer.array(), 0, got);
                }
            }
            writer.join();
        }
        return hex(crc);
    }

    static String children() throws Exception {
        var crc = new CRC32();
        for (int i = 0; i < 10; i++) {
            var child = new ProcessBuilder("sh", "-c", "cat; exit " + i).start();
            try (var to = child.getOutputStream()) {
                for (int j = 0; j < 500; j++) to.write(("line " + j + "\n").getBytes());
            }
            crc.update(child.getInputStream().readAllBytes());
            crc.update(child.waitFor());
        }
        return hex(crc);
    }

    static String interrupts() throws Exception {
        int seen = 0;
        for (int i = 0; i < 200; i++) {
            var interrupted = new AtomicBoolean();
            var sleeper = new Thread(() -> {
                try {
                    Thread.sleep(60000);
                } catch (InterruptedException e) {
                    interrupted.set(true);
                }
            });
            sleeper.start();
            sleeper.interrupt();
            sleeper.join();
            if (interrupted.get()) seen++;
        }
        return Integer.toString(seen);
    }

    static String garbage() {
        long total = 0;
        for (int i = 0; i < 2000; i++) {
            var blocks = new byte[64][];
            for (int j = 0; j < blocks.length; j++) {
                blocks[j] = new byte[8192];
                total += blocks[j].length;
            }
            if (i % 500 == 0) System.gc();
        }
        return Long.toString(total);
    }

    public static void main(String[] arguments) throws Exception {
        var jobs = new LinkedHashMap<String, Job>();
        jobs.put("handover", Load::handover);
        jobs.put("locks", Load::locks);
        jobs.put("sockets", Load::sockets);
        jobs.put("selector", Load::selector);
        jobs.put("children", Load::children);
        jobs.put("interrupts", Load::interrupts);
        jobs.put("garbage", Load::garbage);
        var pool = Executors.newCachedThreadPool();
        var answers = new LinkedHashMap<String, Future<String>>();
        for (int copy = 0; copy < 3; copy++)
            for (var job : jobs.entrySet()) answers.put(job.getKey() + "/" + copy, pool.submit(() -> job.getValue().run()));
        for (var answer : answers.entrySet()) System.out.println(answer.getKey() + ": " + answer.getValue().get());
        pool.shutdown();
    }
}
