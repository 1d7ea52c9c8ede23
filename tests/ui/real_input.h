// RealInput: mouse and keyboard through the X server, like a real user: xdotool sends what the window system then
// delivers. For tests that run under a real server (xvfb-run); coordinates are those of a widget.
#pragma once

#include <QProcess>
#include <QStandardPaths>
#include <QWidget>
#include <QtTest>

namespace stagewright {

class RealInput {
public:
    // Empty if real input is available, else why not.
    static QString missing()
    {
        if (QGuiApplication::platformName() != QLatin1String("xcb"))
            return QStringLiteral("no X server: run under xvfb-run with QT_QPA_PLATFORM=xcb");
        if (QStandardPaths::findExecutable(QStringLiteral("xdotool")).isEmpty())
            return QStringLiteral("xdotool is not installed");
        return {};
    }

    static bool send(const QStringList& words)
    {
        QProcess process;
        process.start(QStringLiteral("xdotool"), words);
        const bool ended = QTest::qWaitFor([&] { return process.state() == QProcess::NotRunning; }, 20000);
        QTest::qWait(40); // the server delivers
        return ended && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0;
    }

    static bool move(const QWidget* widget, QPoint at)
    {
        const QPoint global = widget->mapToGlobal(at);
        return send({QStringLiteral("mousemove"), QString::number(global.x()), QString::number(global.y())});
    }
    static bool click(const QWidget* widget, QPoint at, int button = 1)
    {
        return move(widget, at) && send({QStringLiteral("click"), QString::number(button)});
    }
    static bool click(const QWidget* widget) { return click(widget, widget->rect().center()); }
    static bool doubleClick(const QWidget* widget, QPoint at)
    {
        return move(widget, at) && send({QStringLiteral("click"), QStringLiteral("--repeat"), QStringLiteral("2"),
                                         QStringLiteral("--delay"), QStringLiteral("60"), QStringLiteral("1")});
    }
    // Two moves between press and release: the first leaves the area in which a press is still a click.
    static bool drag(const QWidget* widget, QPoint from, QPoint to)
    {
        return move(widget, from) && send({QStringLiteral("mousedown"), QStringLiteral("1")}) &&
               move(widget, from + (to - from) / 2) && move(widget, to) &&
               send({QStringLiteral("mouseup"), QStringLiteral("1")});
    }
    // xdotool's key names: "ctrl+Return", "e", "slash".
    static bool key(const QString& name)
    {
        return send({QStringLiteral("key"), QStringLiteral("--clearmodifiers"), name});
    }
    static bool type(const QString& text)
    {
        return send({QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("15"), text});
    }
};

} // namespace stagewright
