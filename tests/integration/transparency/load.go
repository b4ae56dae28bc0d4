// A Go program under load: goroutines that compute (which the runtime interrupts with SIGURG), pipes, sockets, timers, children.
// Prints one line a job; the lines are the same each time.
package main

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

const rounds = 2000

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func sum(from io.Reader) string {
	hash := crc32.NewIEEE()
	n, err := io.Copy(hash, from)
	return fmt.Sprintf("%d bytes, %08x, %v", n, hash.Sum32(), err)
}

func text(to io.Writer, lines int) {
	buffered := bufio.NewWriter(to)
	for i := 0; i < lines; i++ {
		fmt.Fprintf(buffered, "line %d\n", i*i)
	}
	check(buffered.Flush())
}

// Loops without a call in them: only a signal gets the thread back from them.
func compute(int) string {
	x := uint32(1)
	for i := 0; i < 300_000_000; i++ {
		x = x*1664525 + 1013904223
	}
	return fmt.Sprint(x)
}

func pipe(int) string {
	reader, writer, err := os.Pipe()
	check(err)
	go func() {
		text(writer, 100_000)
		writer.Close()
	}()
	return sum(reader)
}

func echo(listener net.Listener, network, address string) string {
	defer listener.Close()
	go func() {
		connection, err := listener.Accept()
		check(err)
		_, err = io.Copy(connection, connection)
		connection.Close()
	}()
	connection, err := net.Dial(network, address)
	check(err)
	reader := bufio.NewReader(connection)
	hash := crc32.NewIEEE()
	for i := 0; i < rounds; i++ {
		fmt.Fprintf(connection, "question %d\n", i)
		answer, err := reader.ReadString('\n')
		check(err)
		io.WriteString(hash, answer)
	}
	connection.Close()
	return fmt.Sprintf("%08x", hash.Sum32())
}

func tcp(int) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	return echo(listener, "tcp", listener.Addr().String())
}

func unix(i int) string {
	path := fmt.Sprintf("%s/load.%d.%d", os.TempDir(), os.Getpid(), i)
	listener, err := net.Listen("unix", path)
	check(err)
	return echo(listener, "unix", path)
}

func deadline(int) string {
	a, b, err := os.Pipe()
	check(err)
	defer b.Close()
	check(a.SetReadDeadline(time.Now().Add(20 * time.Millisecond)))
	_, err = a.Read(make([]byte, 1))
	return fmt.Sprint(os.IsTimeout(err))
}

func children(int) string {
	out := ""
	for i := 0; i < 20; i++ {
		child := exec.Command("sh", "-c", fmt.Sprintf("cat; exit %d", i))
		in, err := child.StdinPipe()
		check(err)
		from, err := child.StdoutPipe()
		check(err)
		check(child.Start())
		go func() {
			text(in, 1000)
			in.Close()
		}()
		out += sum(from) + " "
		child.Wait()
		out += fmt.Sprint(child.ProcessState.ExitCode()) + " "
	}
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(out)))
}

func signals(int) string {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	defer signal.Stop(got)
	for i := 0; i < 200; i++ {
		check(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		<-got
	}
	return "200"
}

func garbage(int) string {
	total := 0
	for i := 0; i < 300; i++ {
		blocks := make([][]byte, 64)
		for j := range blocks {
			blocks[j] = make([]byte, 16384)
			total += len(blocks[j])
		}
		if i%20 == 0 {
			runtime.GC()
		}
	}
	debug.FreeOSMemory()
	return fmt.Sprint(total)
}

func main() {
	jobs := []struct {
		name string
		run  func(int) string
	}{{"compute", compute}, {"pipe", pipe}, {"tcp", tcp}, {"unix", unix}, {"deadline", deadline},
		{"children", children}, {"garbage", garbage}}
	const copies = 4
	answers := make([][copies]string, len(jobs))
	var all sync.WaitGroup
	for i := range jobs {
		for j := 0; j < copies; j++ {
			all.Add(1)
			go func(i, j int) {
				defer all.Done()
				answers[i][j] = jobs[i].run(j)
			}(i, j)
		}
	}
	all.Wait()
	for i := range jobs {
		for j := 0; j < copies; j++ {
			fmt.Printf("%s/%d: %s\n", jobs[i].name, j, answers[i][j])
		}
	}
	fmt.Printf("signals: %s\n", signals(0))
}
