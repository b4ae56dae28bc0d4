# 500 pipelines in dash, while children that nobody waits for end all the time: a storm of SIGCHLD with a trap on it.
# One line a pipeline; the lines are the same each time.
ended=0
trap 'ended=$((ended + 1))' CHLD
i=0
while [ $i -lt 500 ]; do
  for n in 1 2 3 4; do true & done
  result=$(seq 1 $((i + 200)) | sed 's/1/x/' | sort -r | tr x y | cksum)
  seq 1 $i | head -n 3 >/dev/null
  (exit $((i % 256)))
  status=$?
  read -r first second <<END
$(printf '%s\n' "$i $status" | cat)
END
  sh -c "exit $((i % 7))" &
  last=$!
  while wait $last; waited=$?; [ $waited -gt 128 ]; do :; done  # a trap ends it
  echo "pipeline $i: $result, $first $second, $waited"
  i=$((i + 1))
done
wait
[ "$ended" -ge 500 ] && echo "children: waited for"
