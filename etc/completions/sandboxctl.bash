# SPDX-License-Identifier: ISC
# bash completion for sandboxctl(8).

_sandboxctl_ids()
{
	sandboxctl ls -q "$@" 2> /dev/null
	sandboxctl ls --no-header "$@" 2> /dev/null |
	    awk '$2 != "-" { print $2 }'
}

# The command on the line so far, the socket that it names, and whether the
# words behind the sandbox have begun.
_sandboxctl_scan()
{
	local i w
	cmd='' socket=() target=''
	for ((i = 1; i < COMP_CWORD; i++)); do
		w=${COMP_WORDS[i]}
		case $w in
		-s|--socket)
			socket=(-s "${COMP_WORDS[i + 1]}")
			((i++))
			;;
		-S|-e|-u|-w|--state|--disk|--key|--memory|--metadata|--name|\
		--on-disconnect|--timeout|--lifetime|--vcpu|--env|--user|\
		--workdir)
			((i++))
			;;
		-*)
			;;
		*)
			if [ -z "$cmd" ]; then
				cmd=$w
			elif [ -z "$target" ]; then
				target=$w
			fi
			;;
		esac
	done
}

_sandboxctl_options()
{
	local common='--help --json --no-header --quiet --socket'
	local command='--env --interactive --timeout --tty --user --workdir'
	case $cmd in
	create) echo "$common --disk --env --key --memory --metadata --name" \
		    "--on-disconnect --timeout --vcpu" ;;
	exec)	echo "--help --socket $command" ;;
	run)	echo "--help --socket $command --disk --lifetime --memory --vcpu" ;;
	wait)	echo "$common --state --timeout" ;;
	doctor)	echo "$common --all --state" ;;
	'')	echo "$common --version" ;;
	*)	echo "$common" ;;
	esac
}

_sandboxctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local cmd target commands words=''
	local -a socket
	commands='create doctor exec health help ls rm run show version wait'
	_sandboxctl_scan
	case $prev in
	-s|--socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	-S)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--on-disconnect)
		mapfile -t COMPREPLY < <(compgen -W 'keep delete' -- "$cur")
		return
		;;
	--state)
		if [ "$cmd" = doctor ]; then
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -W \
			    'running failed gone' -- "$cur")
		fi
		return
		;;
	esac
	if [ -z "$target" ] && [[ $cur == -* ]]; then
		words=$(_sandboxctl_options)
	elif [ -z "$cmd" ]; then
		words=$commands
	else
		case $cmd in
		help)	[ -z "$target" ] && words=$commands ;;
		rm)	words=$(_sandboxctl_ids "${socket[@]}") ;;
		exec|show|wait)
			[ -z "$target" ] &&
			    words=$(_sandboxctl_ids "${socket[@]}") ;;
		create|run)
			[ -z "$target" ] && words=seed ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _sandboxctl sandboxctl
