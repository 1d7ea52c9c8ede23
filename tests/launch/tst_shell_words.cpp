// What is quoted arrives as it was: asked of the real shell, with words made of everything that a shell knows.
#include <QtTest/QtTest>

#include <random>

#include "app/launch/shell_words.h"

using namespace stagewright;

class TestShellWords : public QObject {
    Q_OBJECT

private:
    static std::string saidByShell(const std::string& command)
    {
        QProcess shell;
        shell.start(QStringLiteral("/bin/sh"), {QStringLiteral("-c"), QString::fromStdString(command)});
        shell.waitForFinished();
        return shell.readAllStandardOutput().toStdString();
    }

private slots:
    void everyWordArrives()
    {
        std::mt19937 random(7);
        const std::string letters = "ab '\"$`\\!*?[]{}()<>|&;#~=%^-\t\n.,/:@";
        std::vector<std::string> words{"",   "'", "''",    "a'b",  "$(touch x)", "`id`",
                                       "-n", "~", "~root", "a\nb", "x=y",        "*"};
        for (int i = 0; i < 300; ++i) {
            std::string word;
            for (std::size_t n = random() % 12; n > 0; --n) word += letters[random() % letters.size()];
            words.push_back(word);
        }
        for (const std::string& word : words)
            QCOMPARE(saidByShell("printf '[%s]' " + shellCommand({word})), "[" + word + "]");
        std::string all = "printf '[%s]' " + shellCommand(words);
        std::string expected;
        for (const std::string& word : words) expected += "[" + word + "]";
        QCOMPARE(saidByShell(all), expected);
        QCOMPARE(saidByShell("exec /bin/sh -c " + shellWord(all)), expected); // twice, as ssh needs it
        QVERIFY(shellSplit(shellCommand(words)) == words);
    }

    void wordsOfALine()
    {
        using Words = std::vector<std::string>;
        QVERIFY(shellSplit("  mpiexec -n\t{n} ") == (Words{"mpiexec", "-n", "{n}"}));
        QVERIFY(shellSplit("a'b c'\"d \\\" e\" '' f\\ g $x") == (Words{"ab cd \" e", "", "f g", "$x"}));
        QVERIFY(shellSplit("") == Words{});
        QVERIFY(!shellSplit("a 'b").has_value());
    }

    void foldersOfHome()
    {
        qputenv("HOME", "/tmp/a home");
        QCOMPARE(saidByShell("printf %s " + shellPath("~/x y/$z")), std::string("/tmp/a home/x y/$z"));
        QCOMPARE(saidByShell("printf %s " + shellPath("~")), std::string("/tmp/a home"));
        QCOMPARE(saidByShell("printf %s " + shellPath("/a/~/$(id)")), std::string("/a/~/$(id)"));
    }

    void textOfAHost()
    {
        QCOMPARE(plainText("a\x1b[2Jb\rc\x07\n\td\x7f"), std::string("a\\x1b[2Jb\\x0dc\\x07\n\td\\x7f"));
        QVERIFY(plainText(std::string(5000, 'x'), 100).size() < 120);
        QVERIFY(whyNotSent("plain 'text' $HOME").empty());
        QVERIFY(whyNotSent("two\nlines").find("0x0a") != std::string::npos);
        QVERIFY(!whyNotSent(std::string_view("\0", 1)).empty());
    }
};

QTEST_GUILESS_MAIN(TestShellWords)
#include "tst_shell_words.moc"
