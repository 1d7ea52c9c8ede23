// Options of sbatch, the script, and what Slurm's programs say, in words.
#include <QtTest/QtTest>

#include "app/launch/batch_script.h"
#include "app/launch/shell_words.h"
#include "app/launch/slurm/slurm_option.h"
#include "app/launch/slurm/slurm_queue.h"
#include "schedules/base/text.h"

using namespace stagewright;

class TestSlurm : public QObject {
    Q_OBJECT

private slots:
    void options()
    {
        QCOMPARE(parseSlurmOption("gpus-per-node=8").value(), SlurmOption("gpus-per-node", "8"));
        QCOMPARE(parseSlurmOption("exclusive").value(), SlurmOption("exclusive", ""));
        QCOMPARE(parseSlurmOption("comment=a=b c").value().second, std::string("a=b c"));
        for (const char* bad : {"", "=", "nodes=", "Nodes=2", "--nodes=2", "no_des=2", "nodes2=1", "a b=1",
                                "comment=a\nb", "comment=\x1b", "output=x", "wrap=id", "chdir=/", "array=1-9"})
            QVERIFY2(!parseSlurmOption(bad).has_value(), bad);
        QVERIFY(!parseSlurmOption("comment=" + std::string(2000, 'x')).has_value());
    }

    void theScript()
    {
        BatchScript script;
        script.name = "node1-1";
        script.folder = "/s c/job";
        script.options = {{"nodes", "2"}, {"comment", "it's $(id) \"x\""}, {"exclusive", ""}};
        script.setup = {"module load cuda"};
        script.command = {"/bin/stagewright", "record", "--schedule=a b.csv"};
        script.tasks = 4;
        script.queue = &slurmQueue();
        const std::string text = toText(script).value();
        QVERIFY(text.starts_with("#!/bin/sh\n#SBATCH --job-name=node1-1\n#SBATCH --output='/s "
                                 "c/job/slurm.log'\n#SBATCH --open-mode=append\n#SBATCH --ntasks=4\n#SBATCH "
                                 "--nodes=2\n#SBATCH --comment='it'\\''s $(id) \"x\"'\n#SBATCH --exclusive\n"));
        QVERIFY(text.find("\ncd '/s c/job' || exit 1\n") != std::string::npos);
        QVERIFY(text.find("\nmodule load cuda\n") < text.find("\nsrun --ntasks=4 --mpi=pmix "));
        QVERIFY(text.find("/bin/stagewright record '--schedule=a b.csv' >>log") != std::string::npos);
        script.queue = nullptr;
        QVERIFY(toText(script).value().find("SBATCH") == std::string::npos);
        QVERIFY(toText(script).value().find("srun") == std::string::npos);
    }

    // Options of srun are on its line; one process runs under it, too, without MPI unless they say so.
    void srun()
    {
        QCOMPARE(parseSlurmOption("container-image=/i/a b.sqsh", SlurmProgram::Srun).value(),
                 SlurmOption("container-image", "/i/a b.sqsh"));
        for (const char* bad : {"ntasks=2", "chdir=/", "output=x", "pty", "a b=1", "mpi="}) {
            const auto option = parseSlurmOption(bad, SlurmProgram::Srun);
            QVERIFY2(!option.has_value() && option.error().message.starts_with("--srun"), bad);
        }
        BatchScript script;
        script.folder = "/job";
        script.command = {"/bin/stagewright"};
        script.queue = &slurmQueue();
        script.srun = {{"container-image", "/i/a b.sqsh"}, {"container-readonly", ""}};
        QVERIFY(toText(script).value().find(
                    "\nsrun --ntasks=1 --mpi=none --kill-on-bad-exit=0 '--container-image=/i/a b.sqsh' "
                    "--container-readonly /bin/stagewright >>log") != std::string::npos);
        script.tasks = 2;
        QVERIFY(toText(script).value().find("\nsrun --ntasks=2 --mpi=pmix --kill-on-bad-exit=0 ") != std::string::npos);
        script.srun = {{"mpi", "pmi2"}};
        QVERIFY(toText(script).value().find("\nsrun --ntasks=2 --kill-on-bad-exit=0 --mpi=pmi2 /bin/") !=
                std::string::npos);
    }

    // The words in front of a program, one table for recordings and scripts.
    void launchers()
    {
        const auto words = [](const std::string& launcher, ProcessStart start) {
            return shellCommand(launcherWords(launcher, start).value());
        };
        QVERIFY(words("", {4}) == words("mpirun", {4}));
        QVERIFY(words("mpirun", {4}).ends_with(" -n 4"));
        QCOMPARE(words("srun", {4, 2}), std::string("srun --ntasks=4 --nodes=2 --mpi=pmix --kill-on-bad-exit=0"));
        QCOMPARE(words("srun:pmi2", {4}), std::string("srun --ntasks=4 --mpi=pmi2 --kill-on-bad-exit=0"));
        QCOMPARE(words("srun", {2, 0, false, {{"mpi", "pmi2"}, {"exclusive", ""}}}),
                 std::string("srun --ntasks=2 --kill-on-bad-exit=0 --mpi=pmi2 --exclusive"));
        QCOMPARE(words("jsrun", {6}), std::string("jsrun --np 6"));
        QCOMPARE(words("mpiexec", {6}), std::string("mpiexec -n 6"));
        QCOMPARE(words("flux", {6, 2}), std::string("flux run --ntasks=6 --nodes=2"));
        QCOMPARE(words("flux:pmix", {6}), std::string("flux run --ntasks=6 -opmi=pmix"));
        QCOMPARE(words("custom:run -n {n} '-N {nodes}'", {6, 3}), std::string("run -n 6 '-N 3'"));
        QVERIFY(!launcherWords("custom: ", {1}).has_value());
        QCOMPARE(launcherWords("torchrun", {1}).error().code, ErrorCode::Usage);
        QCOMPARE(shellCommand(oneTaskWords({"--quiet"})),
                 std::string("srun --nodes=1 --ntasks=1 --overlap --mpi=none --quiet --quiet"));
        QCOMPARE(shellCommand(apptainerWords("docker://a/b:1", {"/job", "/my prog"}, true)),
                 std::string("apptainer exec --nv --bind /job --bind '/my prog' docker://a/b:1"));
        QVERIFY(apptainerWords("a/b:1", {"/job"}, true).empty());
        QVERIFY(pyxisOptions("x.sif", {"/job"}, {}).empty());
        QVERIFY(pyxisOptions("a/b:1", {"/job", "/p"}, {{"container-image", "mine"}}) ==
                (std::vector<SlurmOption>{{"container-mounts", "/job:/job,/p:/p"}, {"container-workdir", "/job"}}));
    }

    // A container of Slurm's sees the job's folder and the program; without a queue only Apptainer starts one.
    void containers()
    {
        BatchScript script;
        script.folder = "/shared/job";
        script.command = {"/opt/sw/bin/stagewright", "record"};
        script.queue = &slurmQueue();
        script.container = "a/b:1";
        QVERIFY(toText(script).value().find("\nsrun --ntasks=1 --mpi=none --kill-on-bad-exit=0 --container-image=a/b:1 "
                                            "--container-mounts=/shared/job:/shared/job,/opt/sw:/opt/sw "
                                            "--container-workdir=/shared/job /opt/sw/bin/stagewright record >>log") !=
                std::string::npos);
        script.queue = nullptr;
        QCOMPARE(toText(script).error().code, ErrorCode::Usage);
        script.container = "a.sif";
        script.command = {"/usr/bin/stagewright", "record"};
        QVERIFY(toText(script).value().find("\napptainer exec --bind /shared/job a.sif /usr/bin/stagewright record") !=
                std::string::npos);
    }

    // Each queue's lines, and where mpirun finds its nodes.
    void otherQueues()
    {
        BatchScript script;
        script.name = "a-name-of-many-letters";
        script.folder = "/s c/job";
        script.command = {"/bin/stagewright", "record"};
        script.tasks = 8;
        script.nodes = 2;
        script.gpusOfNode = 4;
        script.directives = {"-A it's"};
        script.environment = {"NCCL_DEBUG=A B", "OMPI_MCA_btl=self"};
        const auto linesOf = [&](const char* queue) {
            script.queue = findQueue(queue);
            const std::string text = toText(script).value();
            std::string lines;
            for (const std::string_view line : split(text, "\n"))
                if (line.starts_with(script.queue->directive))
                    lines += std::string(line.substr(script.queue->directive.size() + 1)) + "\n";
            return lines;
        };
        QCOMPARE(linesOf("pbs"), std::string("-N a-name-of-many-\n-S /bin/sh\n-j oe\n-o '/s c/job/queue.log'\n"
                                             "-l select=2:ncpus=4:mpiprocs=4:ngpus=4\n-l place=scatter\n-A it's\n"));
        QVERIFY(toText(script).value().find(" -n 8 --hostfile \"$PBS_NODEFILE\" -x NCCL_DEBUG /bin/stagewright record "
                                            ">>log 2>&1 </dev/null\n") != std::string::npos);
        QVERIFY(toText(script).value().find("\ntrap : TERM") != std::string::npos);
        QVERIFY(toText(script).value().find("SLURM") == std::string::npos);
        QCOMPARE(linesOf("lsf"), std::string("-J a-name-of-many-letters\n-o '/s c/job/queue.log'\n-n 8\n"
                                             "-R \"span[ptile=4]\"\n-gpu \"num=4\"\n-A it's\n"));
        QCOMPARE(linesOf("flux"),
                 std::string("--job-name=a-name-of-many-letters\n--output='/s c/job/queue.log'\n--nodes=2\n"
                             "--nslots=8\n--cores-per-slot=1\n--gpus-per-slot=1\n-A it's\n"));
        QVERIFY(toText(script).value().find("\nflux run --ntasks=8 --nodes=2 /bin/stagewright record >>log") !=
                std::string::npos);
        script.directives = {"-l select=1:ncpus=64"};
        QVERIFY(linesOf("pbs").find("mpiprocs") == std::string::npos);
        script.container = "a/b:1";
        QCOMPARE(toText(script).error().code, ErrorCode::Usage);
        script.container = {};
        // torchrun: one process a node, with the cores of its ranks
        script.python = PythonRanks{"python3", {"driver.py", "."}, 2, 4};
        script.directives.clear();
        QVERIFY(linesOf("pbs").find("-l select=2:ncpus=4:mpiprocs=1:ngpus=4\n") != std::string::npos);
        const std::string text = toText(script).value();
        QVERIFY(text.find("\nhead=$(cat \"$PBS_NODEFILE\" | head -n 1)\n") != std::string::npos);
        QVERIFY(text.find("--nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=\"$PBS_JOBID\" "
                          "--rdzv-endpoint=\"$head:$port\" driver.py .") != std::string::npos);
        QVERIFY(!findQueue("nqs"));
    }

    void states()
    {
        using Kind = SlurmState::Kind;
        QCOMPARE(readSqueue("PENDING|Resources||1:00:00\n")->words, std::string("queued: waits for free nodes"));
        QCOMPARE(readSqueue("PENDING|ReqNodeNotAvail, UnavailableNodes:n1||1:00\n")->words,
                 std::string("queued: a node that it asks for is not available"));
        QCOMPARE(readSqueue("PENDING|SomethingNew||1:00\n")->words, std::string("queued: SomethingNew"));
        QCOMPARE(readSqueue("RUNNING|None|node[1-2]|1:00:00\n")->words, std::string("running on node[1-2]"));
        QVERIFY(!readSqueue("").has_value());
        QVERIFY(!readSqueue("slurm_load_jobs error\n").has_value());
        QCOMPARE(readSacct("TIMEOUT|0:0|node1|00:01:00\n")->words, std::string("ended at its time limit of 00:01:00"));
        QCOMPARE(readSacct("CANCELLED by 1000|0:15|node1|1:00\n")->kind, Kind::Cancelled);
        QCOMPARE(readSacct("FAILED|5:0|node1|1:00\n")->words, std::string("failed with code 5"));
        QCOMPARE(readScontrol("JobState=PENDING Reason=BeginTime Requeue=1 Restarts=2\n")->restarts, 2);
        QCOMPARE(readSacct("OUT_OF_MEMORY|0:125|n|1:00\n")->kind, Kind::Failed);
        QVERIFY(!readSacct("Slurm accounting storage is disabled\n").has_value());
        const auto shown = readScontrol("JobId=7 JobName=x\n   JobState=NODE_FAIL Reason=None Dependency=(null)\n   "
                                        "NodeList=n1 TimeLimit=1:00 ExitCode=1:0\n");
        QCOMPARE(shown->kind, Kind::Failed);
        QCOMPARE(shown->words, std::string("failed: a node went down"));
        QVERIFY(shown->over());
        QVERIFY(!readScontrol("slurm_load_jobs error: Invalid job id specified\n").has_value());
        QVERIFY(!readSqueue("FUTURE_STATE|None|n|1:00")->over()); // unknown: asked again later
    }
};

QTEST_GUILESS_MAIN(TestSlurm)
#include "tst_slurm.moc"
